"""Sphinx: the pages of this folder and an API reference; `make docs` builds it, warnings are errors."""

import krang_dynamics

project = 'krang_dynamics'
author = 'krang_dynamics developers'
version = release = krang_dynamics.__version__

extensions = ['myst_parser', 'sphinx.ext.autodoc', 'sphinx.ext.autosummary']
exclude_patterns = ['_build']
html_theme = 'furo'
html_title = f'krang_dynamics {release}'

myst_heading_anchors = 3
default_role = 'code'  # docstrings write `name` for code
autosummary_generate = True
autosummary_imported_members = True
autodoc_member_order = 'bysource'
autodoc_default_options = {'members': True, 'undoc-members': False, 'show-inheritance': False}
autodoc_typehints_format = 'short'
python_use_unqualified_type_names = True
