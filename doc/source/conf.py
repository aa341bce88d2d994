"""Sphinx configuration; `tools/test.sh` builds it with warnings as errors."""

project = 'Kronos for Nova'
copyright = 'Kronos for Nova contributors'
extensions = ['openstackdocstheme', 'oslo_config.sphinxconfiggen', 'oslo_config.sphinxext',
              'oslo_policy.sphinxpolicygen']
exclude_patterns = []
html_theme = 'openstackdocs'
openstackdocs_auto_name = False
openstackdocs_auto_version = False
openstackdocs_bug_project = 'kronos-nova'
version = release = ''
config_generator_config_file = '../../etc/kronos/kronos-config-generator.conf'
sample_config_basename = '_static/kronos'
policy_generator_config_file = '../../etc/kronos/kronos-policy-generator.conf'
sample_policy_basename = '_static/kronos'

