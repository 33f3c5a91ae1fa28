"""Data of a chart, and that it is drawn by the script in the file."""

import json

import numpy as np

from krang_dynamics.bags.validation.html_charts import chart, head, scripts


def test_a_chart_holds_its_curves_and_cannot_break_out_of_its_script():
    curves = {'</script>': ('#ff0000', np.array([1.0, np.nan, 123456.789]))}
    html = chart('a "title"', np.array([0.0, 0.5, 1.0]), curves, group='x" onload="y')
    data = json.loads(html.partition('json">')[2].partition('</script>')[0])
    assert data['data'] == [[0.0, 0.5, 1.0], [1.0, None, 123460.0]]
    assert data['names'] == ['</script>']
    assert html.count('</script>') == 1


def test_the_script_is_small_and_complete():
    assert len(head()) + len(scripts()) < 100_000
    assert 'new uPlot' in scripts()
    assert 'uPlot (v1' in scripts()
