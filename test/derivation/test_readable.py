"""The equations of small robots are printed as in their sources."""

import pytest

import krang_dynamics as kd
from krang_dynamics.cli import robot_equations


@pytest.fixture(scope='module', params=['pendubot', 'planar_2r'])
def printed(request):
    return request.param, robot_equations.print_equations(kd.load_robot(request.param), symbolic=True)


EXPECTED = {
    # [pendubot] eq. 2 and 3, in volts and in N m, and eq. 5 in its Christoffel form
    'pendubot': [
        '[theta_1 + theta_2 sin(q_2)^2] ddq_1 + theta_3 cos(q_2) ddq_2'
        ' + 2 theta_2 sin(q_2) cos(q_2) dq_1 dq_2 - theta_3 sin(q_2) dq_2^2 + theta_5 dq_1 = v',
        'theta_3 cos(q_2) ddq_1 + theta_2 ddq_2 - theta_2 sin(q_2) cos(q_2) dq_1^2 - theta_4 g sin(q_2)'
        ' + theta_6 dq_2 = 0',
        "[theta_1' + theta_2' sin(q_2)^2] ddq_1 + theta_3' cos(q_2) ddq_2"
        " + 2 theta_2' sin(q_2) cos(q_2) dq_1 dq_2 - theta_3' sin(q_2) dq_2^2 + beta_1 dq_1 = tau",
        "theta_3' cos(q_2) ddq_1 + theta_2' ddq_2 - theta_2' sin(q_2) cos(q_2) dq_1^2"
        " - theta_4' g sin(q_2) + beta_2 dq_2 = 0",
        'C[1,1] = XX_2 sin(q_2) cos(q_2) dq_2',
        'C[2,1] = -XX_2 sin(q_2) cos(q_2) dq_1',
    ],
    # [lecture] D(q) and P(q)
    'planar_2r': [
        'A[1,1] = I_1 + I_2 + l_1^2 m_2 + l_c1^2 m_1 + l_c2^2 m_2 + 2 l_1 l_c2 m_2 cos(q_2)',
        'A[1,2] = I_2 + l_c2^2 m_2 + l_1 l_c2 m_2 cos(q_2)',
        'A[2,2] = I_2 + l_c2^2 m_2',
        'C[1,1] = -l_1 l_c2 m_2 sin(q_2) dq_2',
        'U = l_1 m_2 g sin(q_1) + l_c1 m_1 g sin(q_1) + l_c2 m_2 g sin(q_1 + q_2)',
    ],
}


@pytest.mark.slow
def test_equations_print_as_in_the_source(printed):
    name, lines = printed
    for line in EXPECTED[name]:
        assert line in lines


def test_latex_of_a_small_robot_has_the_equations_and_of_a_large_one_the_frames():
    small = robot_equations.latex(kd.load_robot('planar_2r'), symbolic=True, small=True)
    assert r'A_{1,2} = ' in small
    large = robot_equations.latex(kd.load_robot('krang'), symbolic=True, small=False)
    assert r'T_{\mathrm{10l}}' in large
    for document in (small, large):
        assert document.count('{') == document.count('}')
        assert document.startswith(r'\documentclass')
        assert r'\end{document}' in document
