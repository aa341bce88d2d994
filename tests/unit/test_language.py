"""Docstrings, comments and documentation are in plain words, as those of Nova and placement are.

A docstring begins with a verb in the imperative or a noun phrase, not with a clause. Words that
readers of another first language look up, or that name a person where a component is meant, are
left to the thing's own name.
"""

import ast
import io
import pathlib
import re
import tokenize

import ddt
import testtools

CHECKOUT = pathlib.Path(__file__).parents[2]

CLAUSE = re.compile(r'(What|Who|Whoever|Whatever|Of|With|Those)\b')
UNUSUAL = re.compile(
    r'\b(told|tells? of|mends?|mended|whoever|somebody|nobody|anew|under way|goes by|gone on with|'
    r'as it were|is let|stays as it is|at hand|amiss)\b', re.IGNORECASE)


def texts(source: str) -> list[tuple[int, str, bool]]:
    """(line, text, whether it is a docstring) of the docstrings, also those of constants, and the
    comments of a module."""
    found = [(node.lineno, node.value.value, True) for node in ast.walk(ast.parse(source))
             if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
             and isinstance(node.value.value, str)]
    return found + [(token.start[0], token.string, False) for token in tokenize.generate_tokens(
        io.StringIO(source).readline) if token.type == tokenize.COMMENT]


def findings(source: str) -> list[str]:
    """The findings of a module, each with its line."""
    found = []
    for line, text, is_docstring in texts(source):
        clause = is_docstring and CLAUSE.match(text.strip())
        if clause:
            found.append(f'{line}: begins with "{clause[0]}"')
        found += [f'{line}: "{word[0]}"' for word in UNUSUAL.finditer(text)]
    return found


@ddt.ddt
class LanguageTest(testtools.TestCase):
    def test_a_text_that_does_not_obey_is_found(self):
        self.assertEqual(
            ['1: begins with "What"', '3: begins with "Of"', '4: "whoever"', '2: "told"'],
            findings('"""What it is."""\nx = 1  # as it is told\n"""Of x."""\n'
                     '"""Ask whoever is there."""\n'))

    @ddt.data(('kronos_nova', 300), ('bench', 60), ('tests', 400), ('tools', 5))
    @ddt.unpack
    def test_a_folder_obeys(self, folder, least):
        modules = sorted(CHECKOUT.joinpath(folder).rglob('*.py'))
        self.assertGreater(len(modules), least)
        self.assertEqual([], [f'{path.relative_to(CHECKOUT)}:{each}' for path in modules
                              for each in findings(path.read_text())])

    def test_the_documentation_uses_no_unusual_words(self):
        pages = [*sorted(CHECKOUT.glob('*.rst')),
                 *sorted(CHECKOUT.joinpath('doc/source').rglob('*.rst'))]
        self.assertGreater(len(pages), 40)
        self.assertEqual([], [
            f'{page.relative_to(CHECKOUT)}:{number}: "{word[0]}"' for page in pages
            for number, line in enumerate(page.read_text().splitlines(), 1)
            for word in UNUSUAL.finditer(line)])
