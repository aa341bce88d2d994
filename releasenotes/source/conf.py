"""Sphinx configuration of the release notes."""

project = 'Kronos for Nova'
copyright = 'Kronos for Nova contributors'
extensions = ['reno.sphinxext']
html_theme = 'furo'
templates_path = ['../../doc/source/_templates']
html_copy_source = html_show_sourcelink = html_show_sphinx = False
version = release = ''
