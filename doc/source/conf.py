"""Sphinx configuration; `tools/test.sh` builds it with warnings as errors."""

import pathlib
import re
import sys

import yaml
from sphinx.util import docutils

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

# ruff: noqa: E402
from kronos_nova.policies import models
from kronos_nova.policies import rules as policy_rules
from tools import manual

project = 'Kronos for Nova'
copyright = 'Kronos for Nova contributors'
version = release = ''
smartquotes = False   # which would make one dash of the two of an option
extensions = ['oslo_config.sphinxext']
exclude_patterns = []
templates_path = ['_templates']

html_theme = 'furo'
html_title = project
html_static_path = ['_static']
html_css_files = ['kronos.css']
html_copy_source = html_show_sourcelink = False
html_show_sphinx = False


class Manual(docutils.SphinxDirective):
    """The page of a command, made of the command itself."""

    required_arguments = 1

    def run(self):
        page = manual.pages()[self.arguments[0]]
        return self.parse_text_to_nodes(f'{manual.sentence(page.summary)}.\n\n{manual.body(page)}',
                                        allow_section_headings=True)


class PolicyKeys(docutils.SphinxDirective):
    """The keys of a policy, or of another model that the file is checked by."""

    optional_arguments = 1

    def run(self):
        rows = []
        name = next(iter(self.arguments), 'Policy')
        model = getattr(models if hasattr(models, name) else policy_rules, name)
        for name, field in model.model_fields.items():
            default = '' if field.is_required() or field.default is None else (
                f' (``{str(field.default).lower()}``)')
            rows.append(f'``{name}``{default}\n    {field.description}')
        return self.parse_text_to_nodes('\n'.join(rows))


class Alerts(docutils.SphinxDirective):
    """The alerts that are shipped, in a table."""

    required_arguments = 1

    def run(self):
        path = (pathlib.Path(self.env.doc2path(self.env.docname)).parent
                / self.arguments[0]).resolve()
        self.env.note_dependency(str(path))
        rows = ['.. list-table::', '   :header-rows: 1', '   :widths: 30 12 18 40', '',
                '   * - Alert', '     - Severity', '     - After', '     - Summary']
        for group in yaml.safe_load(path.read_text())['groups']:
            for rule in group['rules']:
                if 'alert' in rule:
                    summary = re.sub(r'{{ if [^}]*}}(.*?){{ else }}(.*?){{ end }}', r'\1, or \2',
                                     rule['annotations']['summary'])
                    summary = re.sub(r'{{ \$(?:labels\.)?(\w+)[^}]*}}', r'*\1*', summary)
                    rows += [f'   * - `{rule["alert"]}`_', f'     - {rule["labels"]["severity"]}',
                             f'     - {rule.get("for", "at once")}', f'     - {summary}']
        return self.parse_text_to_nodes('\n'.join(rows))


def setup(app):
    app.add_directive('manual', Manual)
    app.add_directive('policy-keys', PolicyKeys)
    app.add_directive('alerts', Alerts)
    return {'parallel_read_safe': True}
