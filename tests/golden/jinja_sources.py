"""Small templates that together use every statement, filter, test and method; make_templates.py renders them."""

VARIABLES = {
    "n": None,
    "t": True,
    "f": False,
    "i": 7,
    "neg": -3,
    "big": 12345678901234567890,
    "x": 2.5,
    "s": "Hello World",
    "u": "Grüße, 世界 👋",
    "empty": "",
    "ws": "  \t padded \n ",
    "lines": "one\ntwo\n\nthree\n",
    "l": [3, 1, 2],
    "words": ["pear", "Apple", "fig", "apple"],
    "e": [],
    "d": {"b": 1, "a": 2, "items": "own"},
    "nested": {"k": {"z": [1, {"y": "deep"}]}, "w": None},
    "users": [
        {"name": "Ann", "age": 30, "tags": ["x"], "on": True},
        {"name": "bob", "age": 25, "tags": [], "on": False},
        {"name": "Cid", "age": 30, "tags": ["y", "z"]},
    ],
    "html": "<a href='x'>\"&\"</a>",
    "floats": [0.1, 1.0, 1e16, 1e-5, 123456789.123, -0.0, 1e100, 0.0001, 3.14],
}

EXPRESSIONS = r"""
1
-1
+1
1.5
1e3
1.0e-7
1_000
0x1F
0b101
0o17
'a'
"a"
'a' 'b' "c"
'it\'s' ~ "\"q\""
'tab\there\nnew\\ \x41 \u00e9 \U0001F600 \101 \q'
'a\
b'
true
True
false
False
none
None
missing
missing.attr
missing.attr.more
missing['x']
missing()
missing + 1
1 + missing
missing == missing
missing ~ 'x'
missing < 1
-missing
missing in [1]
'a' in missing
missing is defined
missing|length
missing|list
missing|default('d')
missing|upper
missing|int
missing[1:]
n
n.x
n['x']
n.x.y
n ~ n
n + 1
n == none
s.nothing
s.nothing.more
d.nothing
d.nothing.more
d['nothing'].more
l[10]
l[10].x
l.foo
i.foo
t
i
x
big
big + 1
l
e
d
nested
users
floats
(1, 2)
(1,)
()
1, 2
[1, 'a', none, true, 1.5]
{'a': 1, 'b': [1], 3: 'x', none: none, (1, 2): 'tuple', 1.5: 2}
{'a': 1, 'a': 2}
{1: 'a', true: 'b', 1.0: 'c'}
['it\'s', 'say "x"', 'both \' and "', 'nl\n\t\r\\', 'ü世👋\u200b\x00\x7f']
1 + 2 * 3
(1 + 2) * 3
2 ** 3 ** 2
-2 ** 2
7 // 2
-7 // 2
7 // -2
7 % 3
-7 % 3
7 % -3
7 / 2
6 / 3
7.5 // 2
-7.5 // 2
-7.5 % 2
7.5 % -2
1 / 0
1 // 0
1 % 0
1.0 / 0
2 ** -1
2 ** 0.5
0.1 + 0.2
1e308 * 10
10 ** 20
true + true
true * 3
'a' + 'b'
'a' * 3
3 * 'ab'
'a' * -1
[1] * 3
[1] + [2]
(1,) + (2,)
[1] + (2,)
'a' + 1
1 + 'a'
1 - 'a'
'a' ~ 1 ~ none ~ true ~ 1.5 ~ [1]
1 ~ 2
not true
not not 1
not ''
not n
1 and 2
0 and 2
1 or 2
0 or ''
n or 'x'
'' or n or 'last'
1 < 2
1 < 2 < 3
1 < 3 < 2
3 > 2 > 1
1 == 1.0
1 == true
'1' == 1
'a' < 'b'
'a' < 1
[1, 2] < [1, 3]
[1] < [1, 0]
(1, 2) < (1, 3)
[1] == (1,)
{'a': 1} == {'a': 1.0}
{'a': 1} < {'b': 1}
n < 1
1 != 2
1 in [1, 2]
1.0 in [1]
'ell' in 'hello'
'' in 'x'
1 in 'abc'
'a' in {'a': 1}
'b' not in {'a': 1}
1 in {1: 2}
[1] in {1: 2}
none in [none]
1 in 5
1 in none
'a' not in ['b']
not 'a' in ['b']
1 if true else 2
1 if false else 2
1 if false
(1 if false) is undefined
(1 if false).x
'a' if i > 3 else 'b' if i > 1 else 'c'
1 if 2 if false else 3
s[0]
s[-1]
s[100]
s['x']
s[1:4]
s[:-1]
s[-3:]
s[::-1]
s[::2]
s[8:2:-2]
s[5:2]
s[:100]
s[-100:3]
u[7]
u[-1]
u[2:5]
u[::-1]
u|length
l[0]
l[-1]
l[1:]
l[::-1]
l[:1]
l['0']
l.0
l.1
l[true]
l[1.0]
l[::0]
l['a':]
(1,2,3)[1:]
range(5)[1:3]
range(5)[::-2]
range(10)[2]
d[1:]
n[1:]
i[1:]
d.b
d['a']
d.items
d['items']
d.items()
d.keys()
d.values()
d.items()|list
d.get('a')
d.get('zz')
d.get('zz', 5)
d.get()
nested.k.z[1].y
nested['k']['z'][0]
d.keys()[0]
d.keys()|list
d.items()|length
d.copy()
'b' in d.keys()
{}.get('x') is none
users[0].name
users[0]['tags'][0]
users.0.name
l.append(4)
l.pop()
l.sort()
d.pop('a')
d.update({'c': 1})
d.clear
l.append
l.append is defined
l.index(1)
l.index(9)
l.count(1)
(1,1,2).count(1)
s.__class__
s._private
d.__class__
namespace(a=1).a
namespace(a=1).b
namespace({'a': 2}).a
namespace(a=1)._a
dict(a=1, b=2)
dict([('x', 1), ('y', 2)])
dict({'x': 1}, y=2)
dict([1])
range(3)
range(3)|list
range(1, 4)|list
range(5, 0, -2)|list
range(0)|list
range(0, 10, 3)
range(1.5)
range(1, 2, 0)
range(1000000)
range('a')
range(3)|sum
range(3) == range(3)
range(3)|length
2 in range(3)
cycler('a', 'b').next()
joiner()() ~ 'x'
raise_exception('boom')
raise_exception('boom ' ~ i)
strftime_now('%Y-%m-%d')
strftime_now('%d %b %Y %H:%M:%S %A %B %j %-d')
strftime_now('')
foo()
s()
i()
'abc'.upper
s.upper()
s.lower()
'hello wORLD 1st x-ray o\'neil'.title()
'hELLO wORLD'.capitalize()
'Hello'.swapcase()
ws.strip()
ws.lstrip()
ws.rstrip()
'xxaxx'.strip('x')
'xyaxy'.strip('yx')
'xxaxx'.lstrip('x')
'xxaxx'.rstrip('x')
'ääbää'.strip('ä')
'a'.strip(none)
'a'.strip(1)
'\u2003\xa0 a\u3000'.strip()
'a b  c'.split()
' a b  c '.split()
'a b  c'.split(' ')
'a b c d'.split(' ', 1)
'a b c d'.split(none, 2)
' a  b  c '.split(none, 1)
'a,b,c'.split(',', maxsplit=1)
'a,b,c'.split(sep=',')
'a,b,c'.split('')
'abc'.split('x')
''.split()
''.split(',')
'a--b--c'.split('--')
'a b c d'.rsplit(' ', 1)
' a  b  c '.rsplit(none, 1)
'a.b.c'.rsplit('.')
'aaaa'.split('aa')
'aaaaa'.rsplit('aa')
lines.splitlines()
lines.splitlines(true)
'a\r\nb\rc\x0bd\u2028e'.splitlines()
''.splitlines()
'abc'.replace('b', 'X')
'aaaa'.replace('a', 'b', 2)
'abc'.replace('', '-')
'abc'.replace('', '-', 2)
''.replace('', 'x')
'aXbX'.replace('X', '')
'abc'.replace('b')
'abc'.startswith('ab')
'abc'.startswith(('x', 'a'))
'abc'.startswith('b', 1)
'abc'.startswith('c', 1, 2)
'abc'.startswith('')
'abc'.startswith('', 4)
'abc'.startswith(1)
'abc'.endswith('bc')
'abc'.endswith(('x', 'c'))
'abc'.endswith('b', 0, 2)
'abcabc'.find('c')
'abcabc'.find('c', 3)
'abcabc'.find('z')
'üüc'.find('c')
'abcabc'.rfind('c')
'üabcabc'.rfind('ab')
'abc'.index('c')
'abc'.index('z')
'abc'.rindex('a')
'aXaXa'.count('a')
'aaaa'.count('aa')
'abc'.count('')
'abc'.count('b', 2)
','.join(['a', 'b'])
','.join(['a', 1])
','.join('abc')
''.join([])
', '.join(d)
'a-b-c'.partition('-')
'a-b-c'.rpartition('-')
'abc'.partition('-')
'abc'.rpartition('-')
'prefix-x'.removeprefix('prefix-')
'prefix-x'.removesuffix('-x')
'x'.removesuffix('y')
'ab'.center(7, '*')
'abc'.center(6) ~ '|'
'ab'.ljust(5, '.')
'ab'.rjust(5)
'42'.zfill(5)
'-42'.zfill(5)
'abc'.isalpha()
'ab1'.isalnum()
'12'.isdigit()
'1a'.isdigit()
''.isdigit()
' \t'.isspace()
'ABC'.isupper()
'abc'.islower()
'A1'.isupper()
'1'.isupper()
'abc'.isascii()
'ü'.isascii()
'ß'.upper()
'ŉ ﬁ ǰ İ'.upper()
'İI'.lower()
'ΑΣ ΑΣΑ Σ'.lower()
'ǆ ﬁx ß'.title()
'ÀÉ'.lower()
'ﬁn'.capitalize()
'{} {}'.format(1, 'a')
'{0}{1}{0}'.format('a', 'b')
'{a}-{b}'.format(a=1, b=2)
'{{}} {}'.format('x')
'{:>5}|{:<5}|{:^5}|'.format('a', 'b', 'c')
'{:*^7}'.format('ü')
'{:05d} {:+d} {:,}'.format(42, 42, 1234567)
'{:x} {:X} {:#x} {:b} {:o}'.format(255, 255, 255, 5, 8)
'{:.2f} {:8.3f} {:e} {:g} {:%}'.format(3.14159, 2.5, 12345.678, 0.0001, 0.25)
'{:.3}'.format('abcdef')
'{:10}|{:10}|'.format('a', 1)
'{!r} {!s}'.format('a', 'b')
'{.name}'.format(users[0])
'{0[name]} {0[tags][0]}'.format(users[0])
'{:{w}}|'.format('a', w=4)
'{} {}'.format(1)
'{'.format(1)
'}'.format(1)
'{x}'.format(1)
'{} {0}'.format(1)
'{:d}'.format('a')
'{}'.format(none)
'{}{}'.format(true, [1])
'{:5}'.format(none)
'{:_}'.format(1234567)
'%s' % 'a'
'%s and %s' % ('a', 1)
'%d %i %5d|%-5d|%05d' % (1, 2, 3, 4, 5)
'%.2f %e %g' % (3.14159, 12345.678, 0.00001)
'%x %X %o %#x' % (255, 255, 8, 255)
'%r %s %%' % ('a', none)
'%(a)s %(b)d' % {'a': 'x', 'b': 2}
'%5s|%-5s|%.2s' % ('a', 'b', 'cde')
'%s' % [1, 2]
'%s'|format('x')
'%(k)s'|format(k=1)
'%d' % 'a'
'%s %s' % 'a'
'x' % 1
'%d' % 3.7
'%c%c' % ('a', 'b')
'%+d % d' % (1, 2)
i|abs
neg|abs
(-1.5)|abs
s|abs
42.55|round
42.55|round(1)
2.675|round(2)
0.5|round
1.5|round
2.5|round
42.55|round(1, 'floor')
42.51|round(1, 'ceil')
42|round
42.4|round(0, 'ceil')
1234|round(-2)
1234.5|round(-2)
'42'|int
'42.7'|int
'x'|int
'x'|int(5)
'ff'|int(0, 16)
'0x1F'|int(0, 16)
'0b11'|int(0, 2)
' 12 '|int
'1_000'|int
''|int
none|int
none|int('z')
3.99|int
-3.99|int
true|int
[]|int
'1e3'|int
'inf'|int
'3.5'|float
'x'|float
'x'|float(1.5)
none|float
'1e400'|float
'nan'|float
' -inf '|float
3|float
1e22
1e15
1e16
123456789012345680.0
0.00001
5e-324
1.7976931348623157e308
100.0
0.1
1/3
s|upper
s|lower
'hello-world foo(bar) x1y o\'neil <tag'|title
'hELLO'|capitalize
'üBER'|capitalize
ws|trim
'xxaxx'|trim('x')
1|trim
none|trim
'abc'|replace('b', 'X')
'aaa'|replace('a', 'b', 2)
123|replace(2, 'x')
'abc'|replace('b', 1)
1|string
1|string + 'a'
none|string
[1]|string
s|length
l|length
d|length
i|length
u|count
'abc'|list
d|list
'abc'|first
'abc'|last
l|first
l|last
e|first
e|last
(e|first) is undefined
d|first
d|last
d.items()|first
d.items()|last
l|reverse|list
'abc'|reverse
d|reverse|list
l|map('string')|reverse
l|map('string')|reverse|join
l|join
l|join(', ')
l|join(',', attribute='x')
users|join(', ', attribute='name')
'abc'|join('-')
d|join(',')
[1, none, true, 1.5, [1]]|join(' ')
n|join
e|default('x')
e|default('x', true)
n|default('x')
n|default('x', true)
f|default('x', boolean=true)
''|d('x', true)
missing|default
missing|d(default_value='q')
d|items|list
d|items
missing|items|list
l|items
l|sort
l|sort(reverse=true)
words|sort
words|sort(case_sensitive=true)
words|sort(true)
users|sort(attribute='name')|map(attribute='name')|list
users|sort(attribute='age,name', reverse=true)|map(attribute='name')|list
users|sort(attribute='age')|map(attribute='name')|join(',')
[1, 'a']|sort
[none, 1]|sort
[[2, 1], [1, 2]]|sort
'cab'|sort
d|sort
d|dictsort
d|dictsort(by='value')
d|dictsort(reverse=true)
{'B': 1, 'a': 2, 'A': 3}|dictsort
{'B': 1, 'a': 2, 'A': 3}|dictsort(true)
{'a': 'z', 'b': 'Y'}|dictsort(false, 'value')
d|dictsort(by='x')
l|dictsort
{1: 'a', 'b': 2}|dictsort
words|unique|list
words|unique(true)|list
users|unique(attribute='age')|map(attribute='name')|list
[[1], [1]]|unique|list
l|min
l|max
words|min
words|max
words|max(case_sensitive=true)
users|min(attribute='age')
users|max(attribute='age')
e|min
(e|max) is undefined
l|sum
users|sum(attribute='age')
users|sum('age', 10)
[0.1, 0.2]|sum
['a']|sum
[[1], [2]]|sum(start=[])
users|map(attribute='name')|list
users|map(attribute='tags.0')|list
users|map(attribute='tags.0', default='-')|list
users|map(attribute='on', default='?')|list
words|map('upper')|list
words|map('replace', 'p', 'q')|list
words|map('length')|sum
words|map('nofilter')|list
words|map
words|map('upper')
words|map('upper')|length
(words|map('upper')|list)[0]
(words|map('upper'))[0]
n|map('upper')|list
i|map('upper')|list
l|select('odd')|list
l|select|list
[0, 1, '', 'a', none]|select|list
[0, 1, '', 'a', none]|reject|list
l|reject('odd')|list
l|select('>', 1)|list
l|select('in', [1, 2])|list
l|select('divisibleby', 3)|list
l|select('nosuch')|list
users|selectattr('on')|map(attribute='name')|list
users|selectattr('on', 'defined')|map(attribute='name')|list
users|selectattr('age', 'equalto', 30)|map(attribute='name')|list
users|selectattr('age', '>', 26)|map(attribute='name')|list
users|selectattr('name', 'in', ['Ann', 'bob'])|list|length
users|rejectattr('on')|map(attribute='name')|list
users|rejectattr('age', 'eq', 30)|map(attribute='name')|list
users|selectattr
missing|selectattr('x')|list
n|select|list
l|batch(2)|list
l|batch(2, 0)|list
range(7)|slice(3)|list
range(7)|slice(3, 'x')|list
users|groupby('age')
users|groupby('age')|map(attribute='grouper')|list
users|groupby('on', default=false)|map('first')|list
(users|groupby('age'))[0].list|length
(s|attr('upper'))()
d|attr('b')
(d|attr('b')) is undefined
s|indent
lines|indent
lines|indent(2, true)
lines|indent(2, first=true, blank=true)
lines|indent('> ')
'a'|indent(2, true)
''|indent
d|indent
'foo bar baz qux'|truncate(9)
'foo bar baz qux'|truncate(9, true)
'foo bar baz qux'|truncate(11)
'foo bar baz qux'|truncate(11, false, '...', 0)
'ab'|center(6) ~ '|'
'foo bar, baz'|wordcount
html|escape
html|e
html|e|e
html|forceescape
html|safe
(html|safe) + '<'
'<' + (html|safe)
(html|safe) ~ '<'
('a<'|safe) * 2
('<b>'|safe)|upper + '<'
('<b>'|safe)|replace('b', '<')
('<b>'|safe).replace('b', '<')
('<b>'|safe)[1:] + '<'
('<b> <c>'|safe).split()[1] + '<'
('<b>'|safe).strip() + '<'
('<%s>'|safe) % '<'
('<{}>'|safe).format('<')
('-'|safe).join(['<', 'a'|safe])
['<', 'b'|safe]|join('-')
[html|safe]
(html|safe)|trim + '<'
(html|safe)|string + '<'
(html|safe) == html
(html|safe)|length
d|tojson
nested|tojson
users|tojson
users|tojson(indent=2)
d|tojson(indent=0)
e|tojson(indent=2)
{}|tojson(indent=4)
d|tojson(sort_keys=true)
d|tojson(separators=(',', ':'))
d|tojson(indent='\t')
u|tojson
u|tojson(ensure_ascii=true)
u|tojson(true)
html|tojson
'q"\\\b\f\n\r\t\x01\x7f/'|tojson
[1.0, 1e16, 0.1, none, true, 12345678901234567890]|tojson
{1: 2, none: 3, true: 4, 1.5: 5}|tojson
{(1, 2): 3}|tojson
(1, 2)|tojson
range(3)|tojson
missing|tojson
words|map('upper')|tojson
d.items()|tojson
namespace()|tojson
('inf'|float)|tojson
s|nosuchfilter
s is nosuchtest
s is string
i is string
i is number
x is number
t is number
i is integer
t is integer
x is integer
x is float
i is float
t is boolean
i is boolean
n is none
n is not none
missing is none
d is mapping
l is mapping
l is sequence
s is sequence
d is sequence
i is sequence
d.keys() is sequence
missing is sequence
l is iterable
s is iterable
i is iterable
missing is iterable
n is iterable
(l|map('string')) is iterable
t is true
1 is true
f is false
0 is false
i is odd
i is even
i is divisibleby 7
i is divisibleby(2)
i is eq 7
i is equalto 7
i is ne 7
i is lt 8
i is gt 8
i is ge 7
i is le(6)
i is in [7]
i is in([1])
'a' is in 'abc'
'abc' is lower
'ABC' is upper
'Abc' is lower
s is callable
range is callable
s.upper is callable
missing is callable
n is sameas none
l is sameas l
l is sameas [3, 1, 2]
(html|safe) is escaped
html is escaped
'upper' is filter
'nope' is filter
'odd' is test
i is not odd
not i is odd
i is odd and t
i is odd if t else 'no'
s is defined and s
s is string is defined
i is > 3
i is odd odd
3|string is string
-i|abs
(-i)|abs
- 3 | abs
l|length > 2
l|length + 1
'a' ~ l|length
'a' ~ 1 + 2
1 + 2 ~ 'a'
not l|length == 3
'x' in 'xyz' and 'z' in 'xyz'
l|sort|first ~ '-' ~ l|sort|last
[1, 2,]
{'a': 1,}
(1, 2,)
[1 2]
{'a' 1}
(1
1 +
+
1 2
a b
l[
l[]
l[1,2]
foo(a=1, 2)
foo(**1, 2)
d(a=1, a=2)
'é' ~ 'e\u0301'|length
['a', 'b'] == ['a', 'b']
none == false
'' == none
0 == false
d == {'a': 2, 'b': 1, 'items': 'own'}
"a" "b" ~ 'c'
loop
caller
varargs
1.5 // 0.5
5 % 2.5
2 ** 10
2 ** 126
(-2) ** 3
0 ** 0
1 == 1 == 1
'%s' % missing
'{}'.format(missing)
missing|string|length
missing|tojson
[missing]
[missing]|join('x')
missing|first
missing|join
missing|sort
missing|map('upper')|list
missing * 2
missing and 1
missing or 1
not missing
d.items.x
d.get
nested.w.foo
nested.w['foo']
""".strip("\n").replace("\\\n", "\\\n")

TEMPLATES = [
    # white space
    "a\n", "a\n\n", "\n", "", "a\r\nb\rc\n", "  a  ",
    "{% if true %}\nx\n{% endif %}\ny", "  {% if true %}\n  x\n  {% endif %}\n  y", "a {% if true %} b {% endif %} c",
    "a\n  {%- if true %}\n b {%- endif %}\n c", "a\n  {%- if true -%}\n b \n {%- endif -%}\n c", "a  {{- 1 -}}  b",
    "a\n{{ 1 }}\nb", "a\n  {{ 1 }}\nb", "a\n  {{- 1 }}\n\nb", "x {%+ if true %}y{% endif %}", "  {%+ if true %}\ny\n  {%+ endif %}\n",
    "{% if true +%}\nx{% endif +%}\ny", "  {# c #}\nx", "a  {# c #}  \nx", "a {#- c -#} \n b", "a\n {#+ c +#}\n b",
    "{% raw %}{{ x }} {% if %}{% endraw %}", "  {% raw %}\n {{ x }}\n  {% endraw %}\nz", "a {%- raw -%} b {%- endraw -%} c",
    "{% raw %}{% endraw %}x", "{% raw %} x", "{# open", "{% if true %}", "{{ 'a' ", "{% if true %}x{% endfor %}", "{%", "{{", "{#", "}}", "%}",
    "{{ '}}' }}", "{{ {'a': {'b': 1}} }}", "{{ {'a': 1}}}", "{{ '{%' }}", "{% set x = '%}' %}{{ x }}", "{{ [{'a': (1, 2)}] }}", "{{ (1] }}",
    "{{ 1 }}\n{{ 2 }}\n", "{{ 1 }}{% if true %}\n\n{% endif %}\n{{ 2 }}", "\n\n{% set x = 1 %}\n\n{{ x }}\n\n", "\t{% set x = 1 %}\t\n{{ x }}",
    "a\n\xa0{% set x = 1 %}\nb", "{% set x = 1 -%}   \n\n  b", "{{ 1 -}}\n\n  b", "{{+ 1 }}", "é{{ 'ü' }}世\n  {% if t %}👋{% endif %}\n",
    "x{% if t %}\n{% endif %}y", "{%if t%}a{%else%}b{%endif%}", "{%-if t-%} a {%-endif-%}", "a{% if t %}{# x #}\n{% endif %}b",
    "{{1}}{{'a'}}", "{{ 1}}}", "{ { 1 } }", "{ % if % }", "{{ 'a\nb' }}", "a{{ '\r\n' }}b",
    # if
    "{% if i > 10 %}a{% elif i > 5 %}b{% else %}c{% endif %}", "{% if e %}a{% elif n %}b{% endif %}.", "{% if missing %}a{% else %}b{% endif %}",
    "{% if i %}{% if n %}x{% else %}y{% endif %}{% endif %}", "{% if %}{% endif %}", "{% if 1, 2 %}x{% endif %}", "{% else %}",
    "{% if t %}a{% else %}b{% else %}c{% endif %}", "{% if n %}{{ n|nosuch }}{% endif %}ok", "{{ n|nosuch if n else 'ok' }}",
    "{% for x in e %}{{ x|nosuch }}{% endfor %}ok", "{% if n %}{% for x in l %}{{ x|nosuch }}{% endfor %}{% endif %}ok", "{% if n %}{{ 1 is nosuch }}{% endif %}ok",
    # for
    "{% for x in l %}{{ x }},{% endfor %}", "{% for x in l %}\n  {{ x }}\n{% endfor %}\n", "{% for x in e %}a{% else %}none{% endfor %}",
    "{% for c in 'aü世' %}[{{ c }}]{% endfor %}", "{% for k in d %}{{ k }} {% endfor %}", "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k, v in d|items %}{{ k }}={{ v }};{% endfor %}", "{% for k, v in d|dictsort %}{{ k }}={{ v }};{% endfor %}", "{% for a, b in [[1, 2], (3, 4)] %}{{ a + b }} {% endfor %}",
    "{% for a, b in [[1, 2, 3]] %}{% endfor %}", "{% for a, b in [1] %}{% endfor %}", "{% for a, (b, c) in [[1, [2, 3]]] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "{% for (a, b) in [[1, 2]] %}{{ a }}{{ b }}{% endfor %}",
    "{% for a, in [[1], [2]] %}{{ a }}{% endfor %}", "{% for a, b in ['xy'] %}{{ a }}-{{ b }}{% endfor %}",
    "{% for x in missing %}a{% else %}b{% endfor %}", "{% for x in n %}{% endfor %}", "{% for x in i %}{% endfor %}", "{% for x in l if x > 1 %}{{ loop.index }}:{{ x }} {% endfor %}",
    "{% for x in l if x > 9 %}a{% else %}b{% endfor %}", "{% for x in range(3) %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }} {% endfor %}",
    "{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% endfor %}", "{% for x in l %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }} {% endfor %}",
    "{% for x in l %}{{ loop.cycle('a', 'b') }}{% endfor %}", "{% for x in [1,1,2] %}{{ loop.changed(x) }} {% endfor %}", "{% for x in l %}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}",
    "{% for x in l %}{% for y in 'ab' %}{{ loop.index }}{{ y }}{% endfor %}{{ loop.index }};{% endfor %}", "{% for x in l %}{% set o = loop %}{% for y in 'ab' %}{{ o.index }}{{ loop.index }} {% endfor %}{% endfor %}",
    "{% for x in l|map('string') %}{{ loop.length }}{{ loop.last }}{% endfor %}", "{% for x in l if x != 1 %}{{ loop.length }}{{ loop.revindex }}{{ loop.last }} {% endfor %}",
    "{% for x in l if loop.first %}{% endfor %}", "{% for x in l %}{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}", "{% for x in l %}{% endfor %}{{ x }}", "{% for i in l %}{{ i }}{% endfor %}{{ i }}",
    "{% for x in range(5) %}{% if x == 3 %}{% break %}{% endif %}{{ x }}{% endfor %}", "{% for x in range(5) %}{% if x % 2 %}{% continue %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in l %}{% break %}{% else %}e{% endfor %}", "{% for x in l %}{% continue %}{% else %}e{% endfor %}", "{% for x in l %}{{ x }}{% break %}{% else %}e{% endfor %}", "{% break %}", "{% if t %}{% continue %}{% endif %}",
    "{% for x in l %}{% for y in l %}{% if y == 1 %}{% break %}{% endif %}{{ y }}{% endfor %}{{ x }}{% endfor %}", "{% for x in l %}{% set z %}a{% if x == 1 %}{% break %}{% endif %}{% endset %}{{ z }}{{ x }}{% endfor %}",
    "{% for x in l %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}", "{% for loop in l %}{% endfor %}", "{% for x in l %}{% set loop = 1 %}{% endfor %}",
    "{% for x.y in l %}{% endfor %}", "{% for 1 in l %}{% endfor %}", "{% for x in %}{% endfor %}", "{% for x in l, e %}{{ x }}{% endfor %}", "{% for x in 1, 2 %}{{ x }}{% endfor %}",
    "{% for u in users %}{{ u.name }}{{ ',' if not loop.last }}{% endfor %}", "{{ loop.index }}", "{% for x in l %}{{ loop|length }}{% endfor %}", "{% for x in l %}{{ loop.foo }}|{% endfor %}",
    "{% for x in l %}{{ loop.foo.bar }}{% endfor %}", "{% for x in d.values() %}{{ x }}{% endfor %}", "{% for x in (1, 2) %}{{ x }}{% endfor %}", "{% for a, b in users|groupby('age') %}{{ a }}:{{ b|length }} {% endfor %}",
    "{% for g in users|groupby('age') %}{{ g.grouper }}:{{ g.list|length }} {% endfor %}", "{% for x in l[::-1] %}{{ x }}{% endfor %}", "{% for x in l|reverse %}{{ x }}{{ loop.length }}{% endfor %}",
    "{% for x in range(3) %}{% for y in range(x) %}{{ y }}{% else %}-{% endfor %};{% endfor %}", "{% set ns = namespace(stop=false) %}{% for x in l if not ns.stop %}{{ x }}{% set ns.stop = true %}{% endfor %}",
    "{% set ns = namespace(stop=false) %}{% for x in l if not ns.stop %}{{ x }}{{ loop.last }}{% set ns.stop = true %}{% endfor %}",
    # set and scope
    "{% set a = 1 %}{{ a }}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a = 1, 2 %}{{ a }}", "{% set (a, b) = (1, 2) %}{{ b }}", "{% set a, b = 1 %}", "{% set a, b = [1, 2, 3] %}", "{% set 1 = 2 %}", "{% set a %}x{{ 1 }}{% endset %}[{{ a }}]",
    "{% set a | upper | trim %} x{{ 'y' }} {% endset %}[{{ a }}]", "{% set a = 1 %}{% for x in l %}{% set a = x %}{{ a }}{% endfor %}{{ a }}", "{% for x in l %}{% set a = x %}{% endfor %}{{ a }}", "{% if t %}{% set a = 1 %}{% endif %}{{ a }}", "{% if f %}{% set a = 1 %}{% endif %}{{ a }}",
    "{% if f %}{% set i = 1 %}{% endif %}{{ i }}", "{% set i = i + 1 %}{{ i }}", "{% for x in l %}{% set i = i + 1 %}{{ i }} {% endfor %}{{ i }}", "{% for x in l %}{{ i }}{% set i = x %}{{ i }} {% endfor %}", "{% for x in l %}{% if x == 1 %}{% set q = x %}{% endif %}{{ q }}|{% endfor %}",
    "{% for x in l %}{% if x == 1 %}{% set i = x %}{% endif %}{{ i }}|{% endfor %}", "{% set a = 0 %}{% for x in l %}{% if x == 1 %}{% set a = x %}{% endif %}{{ a }}|{% endfor %}{{ a }}", "{{ a }}{% set a = 1 %}{{ a }}", "{% set a %}{% set b = 1 %}{{ b }}{% endset %}{{ a }}{{ b }}",
    "{% set ns = namespace(a=1) %}{% for x in l %}{% set ns.a = ns.a + x %}{% endfor %}{{ ns.a }}", "{% set ns = namespace() %}{% set ns.a, ns.b = 1, 2 %}{{ ns.a }}{{ ns.b }}", "{% set d.x = 1 %}", "{% set missing.x = 1 %}", "{% set ns = namespace() %}{% set ns.a %}text{% endset %}{{ ns.a }}",
    "{% set ns = namespace(l=[]) %}{% for x in l %}{% set ns.l = ns.l + [x] %}{% endfor %}{{ ns.l }}", "{% set a = {'b': 1} %}{{ a.b }}{{ a['b'] }}", "{% set none = 1 %}", "{% set true = 1 %}", "{% set a = b = 1 %}", "{% set x = 1 %}{% set y = x %}{% set x = 2 %}{{ x }}{{ y }}",
    "{% set a = namespace(x=1) %}{% set b = a %}{% set b.x = 2 %}{{ a.x }}", "{% set s %}{% endset %}[{{ s }}]{{ s is string }}", "{% for x in l %}{% set s = s ~ x %}{{ s }};{% endfor %}{{ s }}", "{% set range = 5 %}{{ range }}", "{% set l = l + [9] %}{{ l }}",
    "{% if t %}{% for x in l %}{% set z = x %}{% endfor %}{% endif %}{{ z is defined }}", "{% if t %}{% if t %}{% set z = 5 %}{% endif %}{% else %}{% set z = 6 %}{% endif %}{{ z }}", "{% if f %}{% set z = 1 %}{% elif t %}{% set z = 2 %}{% else %}{% set z = 3 %}{% endif %}{{ z }}",
    # macros
    "{% macro m() %}x{% endmacro %}{{ m() }}{{ m() }}", "{% macro m(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(b=5, a=4) }}", "{% macro m(a) %}[{{ a }}]{% endmacro %}{{ m() }}", "{% macro m(a) %}{{ a.x }}{% endmacro %}{{ m() }}", "{% macro m(a) %}{{ a is defined }}{% endmacro %}{{ m() }}",
    "{% macro m(a) %}x{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}x{% endmacro %}{{ m(b=2) }}", "{% macro m(a, b=a) %}{{ b }}{% endmacro %}{{ m(7) }}", "{% macro m(a=b, b=1) %}{{ a }}{% endmacro %}{{ m() }}", "{% macro m(a=1, b) %}{% endmacro %}", "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}",
    "{% macro m(a) %}{{ a }}{{ varargs }}{% endmacro %}{{ m(1, 2, 3) }}", "{% macro m(a) %}{{ kwargs }}{% endmacro %}{{ m(1, z=3) }}{{ m(a=1) }}", "{% macro m() %}{{ i }}{% endmacro %}{{ m() }}", "{% macro m() %}{{ z }}{% endmacro %}{% set z = 4 %}{{ m() }}", "{% set z = 4 %}{% macro m() %}{{ z }}{% endmacro %}{% set z = 5 %}{{ m() }}",
    "{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% set i = 1 %}{{ m() }}", "{% macro m() %}{% set z = 1 %}{{ z }}{% endmacro %}{{ m() }}{{ z }}", "{% macro m(n) %}{{ n }}{% if n > 0 %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(3) }}", "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}",
    "{{ m() }}{% macro m() %}x{% endmacro %}", "{% macro m() %}x{% endmacro %}{{ m() ~ 'y' }}{{ m()|upper }}{{ m() + 'z' }}{{ m() is string }}", "{% macro m() %}\n  x\n{% endmacro %}\n[{{ m() }}]", "{% macro outer() %}{% macro inner() %}i{% endmacro %}{{ inner() }}{% endmacro %}{{ outer() }}{{ inner is defined }}",
    "{% macro m(x) %}{% for y in x %}{{ loop.index }}{{ y }}{% endfor %}{% endmacro %}{% for q in l %}{{ m('ab') }}{% endfor %}", "{% for x in l %}{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% endfor %}", "{% macro m() %}{{ loop }}{% endmacro %}{% for x in l %}{{ m() }}{% endfor %}", "{% for x in l %}{% macro m() %}{{ loop.index }}{% endmacro %}{{ m() }}{% endfor %}",
    "{% macro m(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ m(*[1, 2]) }}{{ m(**{'a': 1, 'b': 2}) }}{{ m(*[1], b=3) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, a=2) }}", "{{ m }}{% macro m() %}{% endmacro %}", "{% macro m() %}{% endmacro %}{{ m.name }}{{ m.arguments }}", "{% macro m(a, a) %}{% endmacro %}", "{% macro m(l) %}{% for x in l %}{{ x }}{% endfor %}{% endmacro %}{{ m([1, 2]) }}",
    "{% macro m() %}a{{ caller() }}b{% endmacro %}{% call m() %}x{% endcall %}", "{% macro m(l) %}{% for x in l %}{{ caller(x) }}{% endfor %}{% endmacro %}{% call(y) m([1, 2]) %}<{{ y }}>{% endcall %}", "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}", "{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}", "{% call 1 %}{% endcall %}", "{% macro m(caller=none) %}{{ caller() if caller else 'no' }}{% endmacro %}{{ m() }}{% call m() %}y{% endcall %}", "{% macro m(caller) %}{{ caller() }}{% endmacro %}",
    "{% set ns = namespace(m=none) %}{% macro m(x) %}<{{ x }}>{% endmacro %}{% set ns.m = m %}{{ ns.m(1) }}", "{% macro m(x='d') %}{{ x }}{% endmacro %}{{ m(none) }}{{ m(missing) }}", "{% macro m(x=[]) %}{{ x + [1] }}{% endmacro %}{{ m() }}{{ m() }}", "{% macro r(v) %}{% if v is mapping %}{% for k, w in v.items() %}{{ k }}({{ r(w) }}){% endfor %}{% elif v is iterable and v is not string %}{% for w in v %}{{ r(w) }},{% endfor %}{% else %}{{ v }}{% endif %}{% endmacro %}{{ r(nested) }}",
    # blocks
    "{% filter upper %}a{{ 'b' }}{% endfilter %}", "{% filter trim|replace('a', 'b') %} aa {% endfilter %}", "{% filter upper %}{% set q = 1 %}{{ q }}{% endfilter %}{{ q }}", "{% filter nosuch %}{% endfilter %}", "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a }}", "{% with %}{% set a = 1 %}{{ a }}{% endwith %}{{ a }}", "{% with a = i, b = a %}{{ b }}{% endwith %}",
    "{% generation %}a{{ i }}{% endgeneration %}b", "{% generation %}{% set q = 1 %}{{ q }}{% endgeneration %}{{ q }}", "{% for x in l %}{% generation %}{{ loop.index }}{{ x }}{% endgeneration %}{% endfor %}", "{% for x in l %}\n  {%- generation -%}\n {{ x }}\n  {%- endgeneration %}\n{% endfor %}", "{% for x in l %}{% generation %}{% break %}{% endgeneration %}{% endfor %}",
    "{% print 1, 2 %}", "{% print 'a' ~ i %}", "{% nosuch %}", "{% endif %}", "{% do l %}", "{% if t %}a{% endif %}{% if t %}b", "{% macro %}{% endmacro %}", "{% set %}", "{% for %}", "{% 1 %}", "{% %}", "{{ }}", "{{ 1 | }}", "{{ s is }}", "{{ s. }}", "{{ .s }}", "{{ 'a }}", "{{ @ }}", "{{ 1; }}", "{{ a = 1 }}", "{% if a = 1 %}{% endif %}",
    # what chat templates do
    "{%- for m in users -%}\n{{- '<|' + m['name'] + '|>' -}}\n{{- m.tags|join(',') }}\n{%- endfor %}", "{{ '<' ~ (users|length)|string ~ '>' }}", "{% if users[0]['name'] == 'Ann' %}{% set loop_messages = users[1:] %}{% else %}{% set loop_messages = users %}{% endif %}{% for m in loop_messages %}{{ m.name }}{% endfor %}",
    "{{ (lines.split('\\n')|last)|length }}{{ lines.split('\\n')[0] }}{{ lines.split('two')[-1].lstrip('\\n') }}", "{% set ns = namespace(found=false, i=0) %}{% for u in users[::-1] %}{% set idx = (users|length - 1) - loop.index0 %}{% if not ns.found and u.age == 25 %}{% set ns.found = true %}{% set ns.i = idx %}{% endif %}{% endfor %}{{ ns.i }}",
    "{% for k, v in {'a': 1, 'b': {'c': [1, 2]}}.items() %}{{ k }}: {{ v | tojson if v is mapping else v | string }}\n{% endfor %}", "{{ {'a': none, 'b': true} | tojson }}{{ {'a': none, 'b': true} }}", "{{ users[0].missing is not defined or users[0].missing }}", "{{ '' if users[0].nope is not defined else 'x' }}", "{{ (users[0].get('tags') or [])|length }}{{ users[1].get('tags', ['q'])|length }}",
    "{%- macro render(x, depth=0) -%}{{ '  ' * depth }}{{ x }}{%- endmacro -%}{{ render('a', 2) }}{{ render(x='b') }}", "{{ '\\n'.join(['a', 'b'])|indent(2) }}", "{{ ['a', 'b']|map('tojson')|join(', ') }}", "{{ users|selectattr('age', 'ge', 26)|list|length }}", "{{ not (n is none) }}{{ n is not none and n.x }}", "{{ messages[0].role if messages else 'nobody' }}", "{{ ('abc' * 3)[:4]|upper }}",
]

CASES = ["{{ " + line + " }}" for line in EXPRESSIONS.split("\n")] + TEMPLATES
