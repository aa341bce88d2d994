"""Docstrings, comments and documentation are in plain words, as those of Nova and placement are.

A docstring begins with a verb in the imperative or a noun phrase, not with a clause. Words that
readers of another first language look up, or that name a person where a component is meant, are
left to the thing's own name.
"""

import ast
import io
import itertools
import pathlib
import re
import tokenize

import ddt
import testtools

CHECKOUT = pathlib.Path(__file__).parents[2]
NEWLINE = '\n'

CLAUSE = re.compile(
    r'(What|Who|Whoever|Whatever|Of|With|Those|Whether|How|Why|When|Where|Which)\b')
UNUSUAL = re.compile(
    r'\b(told|tells? of|mends?|mended|whoever|somebody|nobody|anew|under way|goes by|gone on with|'
    r'as it were|is let|stays as it is|at hand|amiss)\b'.replace(' ', r'\s+'), re.IGNORECASE)
NOT_IMPERATIVE = re.compile(
    r'(The|An?|Each|Every|All|Any|Some|Such|Another|Other|This|These|That|Its|Same|One|Two|No|None|'
    r'Nothing|Everything|Only|It|They|There|As|In|From|By|To|For|If|On|At|Whose|Called|Asked|'
    r'Sorted)\b|[^A-Z]|\w+\'s\b|\w*[^s\W]s\b')
"""The beginning of a docstring that is no verb in the imperative: a determiner, a pronoun, a plural
or third person, a field such as ``:raises``, or a literal."""

FIELD = re.compile(r':(param|raises|returns|ivar)\b|[\w, ]+ : ')
"""The first of a list of fields, of Sphinx or of numpy."""

UNIT = re.compile(
    r'no unit|^(The )?(\S+ ){0,4}?[A-Za-z-]+s\b|'
    r'\b([KMG]iB|digits|parts?|share|ratio|fraction|factor|probability|weight|cost|seconds?|percent|'
    r'bytes|characters|deviations?|imbalance|threshold)\b', re.IGNORECASE)
"""A unit in the first sentence of a constant, a thing that is counted included."""


def is_number(value: ast.expr) -> bool:
    """Return whether an expression is a number, or a collection of numbers alone."""
    match value:
        case ast.Constant():
            return isinstance(value.value, int | float) and not isinstance(value.value, bool)
        case ast.UnaryOp():
            return is_number(value.operand)
        case ast.BinOp():
            return is_number(value.left) or is_number(value.right)
        case ast.Tuple() | ast.List() | ast.Set():
            return bool(value.elts) and all(map(is_number, value.elts))
        case ast.Dict():
            return bool(value.values) and all(map(is_number, value.values))
        case ast.Call(func=ast.Name(id='range' | 'frozenset')):
            return all(map(is_number, value.args))
    return False


def is_constant(node: ast.stmt) -> bool:
    """Return whether a statement names a number, or numbers, in capitals."""
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
        return False
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    first = target.elts[0] if isinstance(target, ast.Tuple) else target
    return isinstance(first, ast.Name) and first.id.isupper() and is_number(node.value)


def constants(source: str) -> list[tuple[int, str]]:
    """(line, docstring) of the numbers of a module. Lines that follow each other may share one."""
    found, shared = [], ''
    body = ast.parse(source).body
    for node, after in reversed([*itertools.zip_longest(body, body[1:])]):
        match after:
            case ast.Expr(value=ast.Constant(value=str() as docstring)):
                shared = docstring
            case ast.Assign() | ast.AnnAssign() if after.lineno == node.end_lineno + 1:
                pass
            case _:
                shared = ''
        if is_constant(node):
            found.append((node.lineno, shared))
    return found[::-1]


def unexplained(source: str) -> list[str]:
    """The numbers of a module whose docstring has no unit, or neither the effect of another value
    nor what fixes this one."""
    found = []
    for line, docstring in constants(source):
        text = docstring.lower()
        if not UNIT.search(' '.join(docstring.split('. ')[0].split())):
            found.append(f'{line}: has no unit')
        if 'fixed' not in text and not ('raised' in text and 'lowered' in text):
            found.append(f'{line}: has no effect when raised and lowered, and is not fixed')
    return found


def texts(source: str) -> list[tuple[int, str, bool]]:
    """(line, text, whether it is a docstring) of the docstrings, also those of constants, and the
    comments of a module."""
    found = [(node.lineno, node.value.value, True) for node in ast.walk(ast.parse(source))
             if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
             and isinstance(node.value.value, str)]
    return found + [(token.start[0], token.string, False) for token in tokenize.generate_tokens(
        io.StringIO(source).readline) if token.type == tokenize.COMMENT]


def functions_without_verbs(source: str) -> list[str]:
    """Return the functions whose docstrings do not begin with a verb in the imperative, each with
    its line. Properties are described as attributes are, and ``__init__`` by the class."""
    return [f'{node.lineno}: {node.name} begins with "{found[0]}"'
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.name != '__init__'
            and not any('property' in ast.unparse(each) for each in node.decorator_list)
            and (found := NOT_IMPERATIVE.match(ast.get_docstring(node) or 'Return'))]


def own_nodes(function: ast.FunctionDef) -> list[ast.AST]:
    """Return the nodes of a function without those of functions and classes within it."""
    found, left = [], list[ast.AST](function.body)
    while left:
        node = left.pop()
        found.append(node)
        if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda):
            left.extend(ast.iter_child_nodes(node))
    return found


def wrong_results(source: str) -> list[str]:
    """Return the functions whose docstrings begin with "Return" or "Yield" where their code does
    not, each with its line. Functions without code, such as those of a protocol, are left out."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef):
            continue
        verb = (ast.get_docstring(node) or '').partition(' ')[0]
        nodes = own_nodes(node)
        yields = any(isinstance(each, ast.Yield | ast.YieldFrom) for each in nodes)
        returns = any(isinstance(each, ast.Return) and each.value for each in nodes)
        has_code = any(not isinstance(each, ast.Expr | ast.Pass | ast.Raise) for each in node.body)
        if has_code and (verb == 'Return' and not returns or verb == 'Yield' and not yields):
            found.append(f'{node.lineno}: {node.name} does not {verb.lower()}')
    return found


def classes_without_sentences(source: str) -> list[str]:
    """Return the classes whose docstrings begin with a list of fields, each with its line."""
    return [f'{node.lineno}: {node.name} has fields and no sentence'
            for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)
            and FIELD.match(ast.get_docstring(node) or '')]


def messages(source: str) -> list[tuple[int, str]]:
    """(line, text) of the strings of a module that have several words: logs, errors and help."""
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [(node.lineno, node.value) for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
            and id(node) not in docstrings and ' ' in node.value.strip()]


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
    def sources(self):
        """Return {path: text} of the modules of the package."""
        found = {path.relative_to(CHECKOUT): path.read_text()
                 for path in sorted(CHECKOUT.joinpath('kronos_nova').rglob('*.py'))}
        self.assertGreater(len(found), 300)
        return found

    def test_a_text_that_does_not_obey_is_found(self):
        self.assertEqual(
            ['1: begins with "What"', '3: begins with "Of"', '4: "whoever"', '2: "told"'],
            findings('"""What it is."""\nx = 1  # as it is told\n"""Of x."""\n'
                     '"""Ask whoever is there."""\n'))

    def test_a_function_without_a_verb_is_found(self):
        self.assertEqual(
            ['1: a begins with "The"', '3: b begins with "Returns"', '5: c begins with ":"',
             '7: d begins with "{"', '9: e begins with "Nova\'s"'],
            functions_without_verbs(''.join(
                f'def {name}(self):\n    """{text}"""\n' for name, text in (
                    ('a', 'The size.'), ('b', 'Returns the size.'), ('c', ':raises E: none'),
                    ('d', '{name: size}'), ('e', "Nova's sizes."), ('f', 'Return the size.'),
                    ('g', 'Pass it.'), ('__init__', ':param a: size')))
                + '@property\ndef h(self):\n    """The size."""\n'))

    @ddt.data(('kronos_nova', 2000), ('tools', 30))
    @ddt.unpack
    def test_a_docstring_of_a_function_begins_with_a_verb(self, folder, least):
        sources = {path.relative_to(CHECKOUT): path.read_text()
                   for path in sorted(CHECKOUT.joinpath(folder).rglob('*.py'))}
        self.assertGreater(sum(isinstance(node, ast.FunctionDef) and bool(ast.get_docstring(node))
                               for source in sources.values()
                               for node in ast.walk(ast.parse(source))), least)
        self.assertEqual([], [f'{path}:{each}' for path, source in sources.items()
                              for each in functions_without_verbs(source)])

    def test_a_wrong_result_is_found(self):
        self.assertEqual(['1: a does not return', '4: b does not yield'], wrong_results(
            'def a():\n    """Return it."""\n    x = 1\n'
            'def b():\n    """Yield it."""\n    return 1\n'
            'def c():\n    """Return it."""\n    return 1\n'
            'def d():\n    """Yield them."""\n    yield from x\n'
            'def e():\n    """Return it."""\n'))

    def test_a_docstring_has_the_results_of_its_function(self):
        sources = self.sources()
        self.assertEqual([], [f'{path}:{each}' for path, source in sources.items()
                              for each in wrong_results(source)])

    def test_a_class_without_a_sentence_is_found(self):
        self.assertEqual(
            ['1: A has fields and no sentence', '3: B has fields and no sentence'],
            classes_without_sentences(
                'class A:\n    """:param a: size"""\nclass B:\n    """a, b : sizes"""\n'
                'class C:\n    """A thing: its size."""\nclass D:\n    """``a`` is a size."""\n'))

    def test_a_docstring_of_a_class_begins_with_a_sentence(self):
        sources = self.sources()
        self.assertEqual([], [f'{path}:{each}' for path, source in sources.items()
                              for each in classes_without_sentences(source)])

    def test_a_number_without_a_meaning_is_found(self):
        fault = 'has no effect when raised and lowered, and is not fixed'
        self.assertEqual(
            [f'1: {fault}', '3: has no unit', f'3: {fault}', f'5: {fault}', f'6: {fault}'],
            unexplained('A = 3\n"""Seconds."""\nB = 4\n\nC = 5\nD = 6\n"""Hosts of it. '
                        'Raised, more."""\nE = 1\n"""Hosts. Raised, more; lowered, fewer."""\n'
                        'F = 2\n"""Hosts. Fixed by Nova."""\nG = "a"\n'))

    def test_every_number_has_a_unit_and_an_effect(self):
        found, count = [], 0
        for path in sorted(CHECKOUT.joinpath('kronos_nova').rglob('*.py')):
            source = path.read_text()
            count += len(constants(source))
            found += [f'{path.relative_to(CHECKOUT)}:{each}' for each in unexplained(source)]
        self.assertGreater(count, 400)
        self.assertEqual([], found)

    @ddt.data(('kronos_nova', 300), ('bench', 60), ('tests', 400), ('tools', 5))
    @ddt.unpack
    def test_a_folder_obeys(self, folder, least):
        modules = sorted(CHECKOUT.joinpath(folder).rglob('*.py'))
        self.assertGreater(len(modules), least)
        self.assertEqual([], [f'{path.relative_to(CHECKOUT)}:{each}' for path in modules
                              for each in findings(path.read_text())])

    @ddt.data(('kronos_nova', 2000), ('tools', 100), ('bench', 400), ('tests', 2000))
    @ddt.unpack
    def test_messages_use_no_unusual_words(self, folder, least):
        found = [(path, line, text) for path in sorted(CHECKOUT.joinpath(folder).rglob('*.py'))
                 if path != pathlib.Path(__file__)   # which has the words themselves
                 for line, text in messages(path.read_text())]
        self.assertGreater(len(found), least)
        self.assertEqual([], [
            f'{path.relative_to(CHECKOUT)}:{line}: "{word[0]}"' for path, line, text in found
            for word in UNUSUAL.finditer(text)])

    @ddt.data(('*.rst', 1), ('doc/source/**/*.rst', 40), ('releasenotes/notes/*.yaml', 150),
              ('kronos_nova/page/*.*', 35), ('etc/**/*.*', 20), ('devstack/*', 1))
    @ddt.unpack
    def test_texts_use_no_unusual_words(self, pattern, least):
        """Documentation, release notes, the page with its strings, and what is installed in etc."""
        files = [path for path in sorted(CHECKOUT.glob(pattern)) if path.is_file()]
        self.assertGreater(len(files), least)
        self.assertEqual([], [
            f'{path.relative_to(CHECKOUT)}:{text.count(NEWLINE, 0, word.start()) + 1}: "{word[0]}"'
            for path in files for text in [path.read_text()] for word in UNUSUAL.finditer(text)])
