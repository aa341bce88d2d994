"""Sphinx configuration of the release notes."""

project = 'Kronos for Nova'
copyright = 'Kronos for Nova contributors'
extensions = ['openstackdocstheme', 'reno.sphinxext']
html_theme = 'openstackdocs'
openstackdocs_auto_name = False
openstackdocs_auto_version = False
version = release = ''
