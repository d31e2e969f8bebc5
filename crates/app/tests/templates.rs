//! The template language: features, error messages, and limits on the work of a template.

#![expect(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use std::time::{Duration, Instant};

use postroad_app::templates::{Model, RenderFailure, StandaloneTemplate, TemplateProblem, TemplateRefusal};
use postroad_store::{TemplateContent, TemplateFormat, TemplateTexts};
use serde_json::{Value, json};

fn content(html: &str) -> TemplateContent {
    let texts = TemplateTexts {
        subject: Some("s".into()),
        html_body: Some(html.into()),
        plain_body: Some("p".into()),
        ..TemplateTexts::default()
    };
    TemplateContent { texts, ..TemplateContent::default() }
}

fn model(value: Value) -> Model {
    match value {
        Value::Object(model) => model,
        other => panic!("{other} is no model"),
    }
}

fn render(html: &str, values: Value) -> Result<String, RenderFailure> {
    render_in(html, values, None)
}

fn render_in(html: &str, values: Value, locale: Option<&str>) -> Result<String, RenderFailure> {
    let template = StandaloneTemplate::build(content(html)).unwrap_or_else(|e| panic!("{html}: {e:?}"));
    Ok(template.render(&model(values), locale)?.html_body.unwrap())
}

fn problems_of(html: &str) -> Vec<TemplateProblem> {
    match StandaloneTemplate::build(content(html)) {
        Err(TemplateRefusal::Invalid(problems)) => problems,
        other => panic!("{html}: {other:?}"),
    }
}

#[test]
fn expressions_mean_what_jinja_says() {
    let values = json!({
        "a": 7, "b": 2, "f": 1.5, "name": "Ann <b>", "list": [3, 1, 2], "gone": null, "yes": true,
        "user": {"name": "Bob", "tags": ["x", "y"]}, "rows": [{"n": 1, "t": "one"}, {"n": 2, "t": "two"}]
    });
    for (source, expected) in [
        ("{{ name }}", "Ann &lt;b&gt;"),
        ("{{ name|safe }}", "Ann <b>"),
        (
            "{{ a + b }} {{ a - b }} {{ a * b }} {{ a // b }} {{ a % b }} {{ a ** b }} {{ a / b }}",
            "9 5 14 3 1 49 3.5",
        ),
        ("{{ a + b * 2 }} {{ (a + b) * 2 }} {{ -a + b }} {{ f * b }}", "11 18 -5 3.0"),
        ("{{ 'x' ~ a ~ 'y' }}{{ 'a' + 'b' }}", "x7yab"),
        (
            "{{ a > b and not (a == b) or false }} {{ 2 in list }} {{ 9 not in list }} {{ 'nn' in name }}",
            "true true true true",
        ),
        ("{{ 'big' if a > 5 else 'small' }}{{ 'x' if a < 5 }}", "big"),
        ("{% if a is odd and user.tags is sequence %}1{% elif a %}2{% else %}3{% endif %}", "1"),
        (
            "{% for r in rows %}{{ loop.index }}:{{ r.t }}{{ ', ' if not loop.last }}{% else %}none{% endfor %}",
            "1:one, 2:two",
        ),
        ("{% for k, v in user|items if k != 'tags' %}{{ k }}={{ v }}{% endfor %}", "name=Bob"),
        ("{% set x = a * 2 %}{% with y = x + 1 %}{{ x }} {{ y }}{% endwith %}", "14 15"),
        (
            "{{ list|sort|join('-') }} {{ list|length }} {{ list|sum }} {{ list|max }} {{ list[0] }} {{ list[1:]|join }}",
            "1-2-3 3 6 3 3 12",
        ),
        (
            "{{ user['name']|upper }} {{ rows|map(attribute='t')|join(' ') }} {{ rows|selectattr('n', 'eq', 2)|map(attribute='t')|first }}",
            "BOB one two two",
        ),
        ("{{ missing|default('—') }}{{ user.nick is defined }}", "—false"),
        ("{{ user.name|default(missing) }}{{ (missing if 1 else other)|default('—') }}", "Bob—"),
        ("{% set x = missing if 1 else other %}{{ x is defined }}", "false"),
        ("{{ gone|default('—') }}{{ gone is defined }}{{ gone is none }}{{ gone == a }}", "—falsetruefalse"),
        ("{% if gone %}1{% elif not gone and gone is undefined %}2{% endif %}{{ 'x' if gone }}", "2"),
        ("{{ 'a b&c/ü'|urlencode }}", "a%20b%26c/%C3%BC"),
        ("{{ 'one\ntwo <'|nl2br }}", "one<br>\ntwo &lt;"),
        ("{{ user|tojson }}", "{\"name\":\"Bob\",\"tags\":[\"x\",\"y\"]}"),
        ("{{ 'a-b'|replace('-', '+') }} {{ [user.name, a]|join(', ') }} {{ {'k': a}.k }}", "a+b Bob, 7 7"),
        ("{% raw %}{{ x }} {% if %}{% endraw %}{# note #} { {{- ' y' }}", "{{ x }} {% if %} { y"),
        ("p { color: red }{{ '{' }}{{ \"q\\\"uo\\\\te\" }}", "p { color: red }{q&quot;uo\\te"),
        ("{% for n in range(3) %}{{ loop.cycle('a', 'b') }}{{ n }}{% endfor %}", "a0b1a2"),
        ("line\n\n{%- if yes %}\n  kept\n{%- endif %}\nend\n", "line\n  kept\nend\n"),
    ] {
        assert_eq!(render(source, values.clone()).as_deref(), Ok(expected), "{source}");
    }
}

#[test]
fn numbers_dates_money_and_plurals_follow_the_language() {
    let values = json!({"n": 1_234_567.891, "price": "1234.5", "at": "2026-03-05T23:30:00Z", "day": "2026-03-05", "epoch": 1_772_753_400});
    for (locale, source, expected) in [
        (
            "en",
            "{{ n|number }} {{ n|number(1) }} {{ price|number(2) }}",
            "1,234,567.891 1,234,567.9 1,234.50",
        ),
        ("de", "{{ n|number(2) }} {{ price|currency('EUR') }}", "1.234.567,89 1.234,50\u{a0}€"),
        (
            "en-US",
            "{{ price|currency('USD') }} {{ 5|currency('JPY') }} {{ -3|currency('usd') }}",
            "$1,234.50 ¥5 -$3.00",
        ),
        ("de-AT", "{{ 9|currency('EUR') }}", "€\u{a0}9,00"),
        ("en", "{{ 0.256|percent }} {{ 0.256|percent(0) }}", "25.6% 26%"),
        ("en", "{{ 0.256|percent(20) }}", "25.60000000000000000000%"),
        ("en-US", "{{ at|date('long') }}", "March 5, 2026"),
        ("en-US", "{{ at|date('long', tz='Europe/Vienna') }}", "March 6, 2026"),
        ("de", "{{ at|date('long') }} {{ day|date('short') }}", "5. März 2026 05.03.26"),
        ("de", "{{ at|time('short', tz='Europe/Vienna') }}", "00:30"),
        ("en", "{{ at|date('%Y/%m/%d %H:%M') }} {{ epoch|date('%Y') }}", "2026/03/05 23:30 2026"),
        ("en", "{{ 1|plural('item', 'items') }} {{ 3|plural('item', 'items') }}", "item items"),
        (
            "pl",
            "{{ 3|plural(one='plik', few='pliki', many='plików', other='pliku') }} {{ 5|plural(one='plik', few='pliki', many='plików', other='pliku') }}",
            "pliki plików",
        ),
        ("en", "{{ n|number(0, locale='de') }}", "1.234.568"),
    ] {
        assert_eq!(
            render_in(source, values.clone(), Some(locale)).as_deref(),
            Ok(expected),
            "{locale} {source}"
        );
    }
}

#[test]
fn mistakes_have_their_line_and_column() {
    for (source, line, column, words) in [
        ("<p>\n  {{ name }</p>", 2, 11, "unexpected"),
        ("a\n{% if x %}\nb", 2, 11, "unexpected end"),
        ("x {{ name|uper }}", 1, 11, "did you mean `upper`?"),
        ("x\n\n   {{ a is oddd }}", 3, 7, "did you mean `odd`?"),
        ("{% include 'x' %}", 1, 4, "include"),
        ("{% extends 'x' %}", 1, 4, "extends"),
        ("{% macro m() %}{{ m() }}{% endmacro %}", 1, 4, "macro"),
        ("{% import 'x' as y %}", 1, 4, "import"),
        ("{% set x %}big{% endset %}", 1, 4, "`set` needs a value"),
        ("{% filter upper %}x{% endfilter %}", 1, 4, "not available"),
        ("{% for x in y recursive %}{{ loop(x) }}{% endfor %}", 1, 4, "recursive"),
        ("{{ open('/etc/passwd') }}", 1, 4, "the only functions"),
        ("{{ ''.__class__.__mro__() }}", 1, 16, "the only functions"),
        ("{{ x|postroad_operator('+', 1) }}", 1, 4, "no filter"),
        ("{{ namespace() }}", 1, 4, "the only functions"),
        ("{{ a < b < c }}", 1, 4, "instead of"),
    ] {
        let found = problems_of(source);
        let problem = &found[0];
        assert_eq!((problem.part.as_str(), problem.line), ("html_body", line), "{source}: {problem:?}");
        assert!(problem.message.contains(words), "{source}: {problem:?}");
        assert!(problem.column > 0 && problem.column.abs_diff(column) <= 8, "{source}: {problem:?}");
    }
}

#[test]
fn a_missing_variable_is_named_with_its_line_and_the_nearest_name() {
    let values = json!({"user": {"name": "Ann"}, "items": [{"title": "x", "price": 1}], "total": 3});
    for (source, variable, line, nearest) in [
        ("Hello {{ nmae }}", "nmae", 1, None),
        ("a\nb\n{{ user.nmae }}", "user.nmae", 3, Some("name")),
        ("{{ usr.name }}", "usr.name", 1, Some("user")),
        ("{% for i in items %}\n{{ i.titel }}{% endfor %}", "i.titel", 2, Some("title")),
        ("{{ total\n + totla }}", "totla", 2, Some("total")),
        ("{{ 'x' ~ usre.name }}", "usre.name", 1, Some("user")),
        ("{% if usr %}x{% endif %}", "usr", 1, Some("user")),
        ("{{ user.naem|upper }}", "user.naem", 1, Some("name")),
        ("{{ toatl|currency('EUR') }}", "toatl", 1, Some("total")),
        ("{% for x in itmes %}{% endfor %}", "itmes", 1, Some("items")),
        ("{{ [totl]|join }}", "totl", 1, Some("total")),
        // Other tags of the line are not rendered, or have what they need.
        ("{% if total == 0 %}{{ first }}{% endif %}{{ second }}", "second", 1, None),
        (
            "{{ user.name }} {{ first|default('') }} {% if total > 9 %}{{ a }}{% elif usr %}{% endif %}",
            "usr",
            1,
            Some("user"),
        ),
        (
            "{% for i in items %}{% if i.price > 1 %}{{ i.x }}{% endif %}{{ i.titel|upper }}{% endfor %}",
            "i.titel",
            1,
            Some("title"),
        ),
        ("{{ totla|replace(user.name, 'x') }}{{ total }}", "totla", 1, Some("total")),
        // Arguments of filters, tests and functions.
        ("{{ user.name|replace(user.naem, 'x') }}", "user.naem", 1, Some("name")),
        ("{{ user.name\n|replace('x', with=totla) }}", "totla", 2, Some("total")),
        ("{{ total|number(totla) }}", "totla", 1, Some("total")),
        ("{{ total|number(digits=user.naem) }}", "user.naem", 1, Some("name")),
        ("{% if user.name is startingwith(user.nam) %}{% endif %}", "user.nam", 1, Some("name")),
        ("{% for n in range(totla) %}{% endfor %}", "totla", 1, Some("total")),
        ("{{ items[totla].title }}", "totla", 1, Some("total")),
        ("{{ user.name[:totla] }}", "totla", 1, Some("total")),
        // Only one branch of a condition is needed, after the condition itself.
        ("{{ first if total > 9 else totla }}", "totla", 1, Some("total")),
        ("{{ totla if total > 1 else first }}", "totla", 1, Some("total")),
        ("{{ first if totla else second }}", "totla", 1, Some("total")),
        ("{{ (first if total > 9 else totla)|upper }}", "totla", 1, Some("total")),
        ("{{ 'x' ~ (first if total > 9 else (second if total > 8 else totla)) }}", "totla", 1, Some("total")),
        // Part of a computed value.
        ("{{ (items|first).titel }}", "(items|first).titel", 1, None),
        ("{{ user.name|replace((items|first).titel, 'x') }}", "(items|first).titel", 1, None),
        ("{{ items[total - 3].titel }}", "items[total - 3].titel", 1, None),
    ] {
        match render(source, values.clone()) {
            Err(RenderFailure::VariableMissing {
                variable: named,
                part,
                line: at,
                nearest: named_nearest,
                message,
                ..
            }) => {
                assert_eq!((named.as_str(), part.as_str(), at), (variable, "html_body", line), "{source}");
                assert_eq!(named_nearest.as_deref(), nearest, "{source}");
                assert!(message.contains(variable), "{message}");
            }
            other => panic!("{source}: {other:?}"),
        }
    }
}

#[test]
fn a_missing_variable_of_generated_html_is_named_where_its_author_wrote_it() {
    let mjml = "<mjml><mj-body><mj-section><mj-column>\n<mj-text>{{ name }}</mj-text>\n\n\
                <mj-button href=\"https://example.com/{{ id }}\">\n  {{ name }} {{ titel }}</mj-button>\n\
                </mj-column></mj-section></mj-body></mjml>";
    let styled = "<style>\np { color: red }\ntd { color: blue }\n</style>\n<p>{{ name }}</p>\n<p>{{ id }} {{ name }}\n{{ titel }}</p>";
    for (format, source, line) in [(TemplateFormat::Mjml, mjml, 5), (TemplateFormat::Html, styled, 7)] {
        let mut content = content(source);
        (content.format, content.inline_css) = (format, true);
        let template = StandaloneTemplate::build(content).unwrap();
        assert_ne!(template.content.texts.html(), Some(source), "it is generated");
        let failure =
            template.render(&model(json!({"name": "Ann", "id": 1, "title": "x"})), None).unwrap_err();
        let RenderFailure::VariableMissing { variable, part, line: at, column, .. } = failure else {
            panic!("{failure:?}")
        };
        let text = source.lines().nth(at - 1).unwrap();
        assert_eq!((variable.as_str(), part.as_str(), at), ("titel", "html_body", line));
        assert!(text[column - 1..].starts_with("titel"), "{text}, column {column}");
    }
}

#[test]
fn null_counts_as_missing() {
    let values =
        json!({"name": null, "nmae": "Ann", "user": {"nick": null}, "rows": [{"n": null}, null], "n": 1});
    for (source, variable, line, nearest) in [
        ("Hello\n{{ name }}", "name", 2, Some("nmae")),
        ("{{ user.nick }}", "user.nick", 1, None),
        ("{{ name|upper }}", "name", 1, Some("nmae")),
        ("{{ name|nl2br }}", "name", 1, Some("nmae")),
        ("{{ name|number }}", "name", 1, Some("nmae")),
        ("{{ name|date }}", "name", 1, Some("nmae")),
        ("{{ name|plural('a', 'b') }}", "name", 1, Some("nmae")),
        ("{{ name|length }}", "name", 1, Some("nmae")),
        ("{{ name|tojson }}", "name", 1, Some("nmae")),
        ("{{ 'x' ~ name }}", "name", 1, Some("nmae")),
        ("{{ n + user.nick }}", "user.nick", 1, None),
        ("{{ n in user.nick }}", "user.nick", 1, None),
        ("{{ [name]|join }}", "name", 1, Some("nmae")),
        ("{% for x in user.nick %}{% endfor %}", "user.nick", 1, None),
        ("{% for row in rows %}{{ row.n }}{% endfor %}", "row.n", 1, None),
        ("{% set x = name %}\n{{ x }}", "x", 2, Some("nmae")),
        ("{{ nmae|replace(name, 'x') }}", "name", 1, Some("nmae")),
        ("{{ user.nick if n > 1 else name }}", "name", 1, Some("nmae")),
    ] {
        match render(source, values.clone()) {
            Err(RenderFailure::VariableMissing {
                variable: named, line: at, nearest: named_nearest, ..
            }) => {
                assert_eq!(
                    (named.as_str(), at, named_nearest.as_deref()),
                    (variable, line, nearest),
                    "{source}"
                );
            }
            other => panic!("{source}: {other:?}"),
        }
    }
}

/// Each source is refused when it is saved, fails while it is rendered, or is rendered: within seconds in any case.
#[test]
fn every_template_ends_within_seconds() {
    let wide: Vec<i64> = (0..20_000).collect();
    let mut deep = json!(1);
    for _ in 0..120 {
        deep = json!([deep]);
    }
    let values = json!({"list": wide, "deep": deep, "text": "x".repeat(500_000), "n": 3});
    let model = model(values);
    let sources = [
        "{% for a in list %}{% for b in list %}{{ b }}{% endfor %}{% endfor %}".to_owned(),
        "{% for a in range(10000) %}{% for b in range(10000) %}{% endfor %}{% endfor %}".to_owned(),
        "{{ 'x' * 1000000000 }}".to_owned(),
        "{{ range(1000000000)|list }}".to_owned(),
        format!("{{% set x = text %}}{}{{{{ x|length }}}}", "{% set x = x ~ x %}".repeat(31)),
        format!("{{% set x = text %}}{}", "{% set x = x ~ x %}".repeat(1_000)),
        format!("{{% set x = [1] %}}{}{{{{ x|tojson }}}}", "{% set x = [x, x] %}".repeat(31)),
        format!("{{% set x = [1] %}}{}{{{{ x == x }}}}", "{% set x = [x, x] %}".repeat(31)),
        format!("{{% set x = [1] %}}{}", "{% set x = [x] %}".repeat(20_000)),
        "{% for a in list %}{% if a in list %}{% endif %}{% endfor %}".to_owned(),
        "{% for a in list %}{{ list == list }}{% endfor %}".to_owned(),
        "{% for a in list %}{{ list|sort|join(text) }}{% endfor %}".to_owned(),
        "{{ list|join(text) }}".to_owned(),
        "{{ text|replace('x', text) }}".to_owned(),
        "{{ list|batch(1000000000, 'x')|list }}".to_owned(),
        "{% for a in range(10000) %}{{ text }}{% endfor %}".to_owned(),
        format!("{{% for a in range(10000) %}}{}{{% endfor %}}", "y".repeat(400_000)),
        format!("{{{{ {} }}}}", vec!["n"; 100_000].join(" ~ ")),
        format!("{{{{ {} }}}}", "(".repeat(100_000)),
        format!("{{{{ n{} }}}}", "|upper".repeat(100_000)),
        format!("{{{{ {}n }}}}", "not ".repeat(100_000)),
        format!("{{{{ n{} }}}}", ".a".repeat(100_000)),
        "{% if n %}".repeat(20_000),
        format!("{{% if n %}}{}{{% endif %}}", "{% elif n %}".repeat(20_000)),
        "{{ n }}".repeat(60_000),
        "{{".repeat(100_000),
        "{% for a in deep %}{{ a }}{% endfor %}{{ deep == deep }}{{ deep|tojson }}".to_owned(),
        "{{ list|map('replace', 'x', text)|list }}".to_owned(),
        "{{ list|select('in', list)|list }}".to_owned(),
        "{{ n|date('%1000000000d') }}".to_owned(),
        "{{ 9 ** 9 ** 9 ** 9 }}".to_owned(),
        "{{ 1.5|round(1000000000) }}{{ n|number(20000) }}".to_owned(),
        format!("{{% set x = text %}}{}{{{{ x|length }}}}", "{% set x = [x, x]|sum(start='') %}".repeat(31)),
        "{{ text|split('')|sum(start='')|length }}".to_owned(),
        "{% for a in list %}{% set x = '1e30000'|number %}{% endfor %}".to_owned(),
        "{% for a in list %}{% set x = n|plural(text, text) %}{% endfor %}".to_owned(),
    ];
    for source in sources {
        let started = Instant::now();
        let shown: String = source.chars().take(80).collect();
        let outcome = match StandaloneTemplate::build(content(&source)) {
            Ok(template) => {
                format!("{:?}", template.render(&model, None).map(|made| made.html_body.unwrap().len()))
            }
            Err(refused) => format!("{refused:?}").chars().take(200).collect(),
        };
        let took = started.elapsed();
        // A generous limit: tests are built without optimisation, and the machine does other things, too.
        assert!(took < Duration::from_secs(3), "{shown} took {took:?}: {outcome}");
        println!("{took:>10.1?} {shown}: {outcome}");
    }
}

#[test]
fn only_numbers_are_summed() {
    let values = json!({"rows": [{"p": {"n": 1}}, {"p": {"n": 2.5}}], "gaps": [{"n": 1}, {}], "words": ["a", "b"], "empty": [], "name": "x"});
    for (source, expected) in [
        ("{{ rows|sum(attribute='p.n') }} {{ rows|sum('p.n', 10) }} {{ empty|sum }}", "3.5 13.5 0"),
        ("{{ gaps|selectattr('n')|sum(attribute='n') }}", "1"),
        ("{{ [[1, 2], [3]]|sum('0') }} {{ [true, 1]|sum(start=1) }}", "4 3"),
    ] {
        assert_eq!(render(source, values.clone()).as_deref(), Ok(expected), "{source}");
    }
    for source in [
        "{{ words|sum }}",
        "{{ words|sum(start='') }}",
        "{{ words|sum(start=name) }}",
        "{{ [words, words]|sum(start=[]) }}",
        "{{ [words]|sum('', words) }}",
        "{{ rows|sum }}",
        "{{ gaps|sum(attribute='n') }}",
        "{{ rows|sum(attribute='price') }}",
    ] {
        let refused = render(source, values.clone());
        assert!(matches!(refused, Err(RenderFailure::Failed { .. })), "{source}: {refused:?}");
    }
}

#[test]
fn numbers_have_a_bounded_length() {
    let values = json!({"large": 1e300, "small": 1e-300});
    for source in [
        "{{ large|number }}",
        "{{ '1e40'|number }}",
        "{{ '1e30000'|currency('EUR') }}",
        "{{ '-1e99'|percent }}",
        "{{ 1|percent(-1) }}",
    ] {
        let refused = render(source, values.clone());
        assert!(matches!(refused, Err(RenderFailure::Failed { .. })), "{source}: {refused:?}");
    }
    let digits = "9".repeat(39);
    assert_eq!(
        render(&format!("{{{{ '{digits}'|number }}}}"), values.clone()).unwrap().replace(',', ""),
        digits
    );
    assert!(render("{{ '1e-30000'|number }}{{ small|number }}", values).unwrap().len() < 100);
}

#[test]
fn texts_put_into_markup_are_escaped() {
    let values = json!({"html": "<p>NAME</p>", "v": "<script>", "list": ["<b>", "c"]});
    for (source, expected) in [
        ("{{ html|safe|replace('NAME', v) }}", "<p>&lt;script&gt;</p>"),
        ("{{ html|safe|replace('NAME', '<i>'|safe) }}", "<p><i></p>"),
        ("{{ html|replace('NAME', v) }}", "&lt;p&gt;&lt;script&gt;&lt;/p&gt;"),
        ("{{ ['<b>'|safe, 'a']|join(v) }}", "<b>&lt;script&gt;a"),
        ("{{ ['<b>'|safe, '<a>']|join('<br>'|safe) }}", "<b><br>&lt;a&gt;"),
        ("{{ list|join(v) }}", "&lt;b&gt;&lt;script&gt;c"),
    ] {
        assert_eq!(render(source, values.clone()).as_deref(), Ok(expected), "{source}");
    }
}

#[test]
fn a_subject_is_one_line_whatever_a_variable_brings() {
    let mut content = content("x");
    content.texts.subject = Some("Hello {{ name }} & co".into());
    let template = StandaloneTemplate::build(content).unwrap();
    let subject =
        |name: &str| template.render(&model(json!({ "name": name })), None).map(|made| made.subject.unwrap());
    assert_eq!(subject("Ann <b>").as_deref(), Ok("Hello Ann <b> & co"), "no HTML, so nothing is escaped");
    for name in ["x\r\nBcc: eve@example.com", "x\ny", "x\0"] {
        assert!(matches!(subject(name), Err(RenderFailure::Failed { .. })), "{name:?}");
    }
}

#[test]
fn each_text_that_a_language_lacks_falls_back_by_itself() {
    let mut content = content("<p>Hello {{ n|number }}</p>");
    let texts = |subject: Option<&str>, html: Option<&str>| TemplateTexts {
        subject: subject.map(Into::into),
        html_body: html.map(Into::into),
        ..TemplateTexts::default()
    };
    content.locales.insert("de".into(), texts(Some("Hallo"), Some("<p>Hallo {{ n|number }}</p>")));
    content.locales.insert("de-AT".into(), texts(Some("Servus"), None));
    let template = StandaloneTemplate::build(content).unwrap();
    let made = |locale: Option<&str>| {
        let made = template.render(&model(json!({"n": 1234.5})), locale).unwrap();
        (made.subject.unwrap(), made.html_body.unwrap(), made.plain_body.unwrap())
    };
    let tuple = |a: &str, b: &str, c: &str| (a.to_owned(), b.to_owned(), c.to_owned());
    assert_eq!(made(None), tuple("s", "<p>Hello 1,234.5</p>", "p"));
    assert_eq!(made(Some("de")), tuple("Hallo", "<p>Hallo 1.234,5</p>", "Hallo 1.234,5\n"));
    assert_eq!(made(Some("de_at")).0, "Servus");
    assert!(made(Some("de-AT")).1.starts_with("<p>Hallo"));
    assert_eq!(made(Some("de-CH")).0, "Hallo");
    assert_eq!(made(Some("fr")).0, "s");
    assert_eq!(made(Some("../../x")).0, "s");
}

#[test]
fn the_suggested_model_fits_the_template() {
    let source = "{{ user.name }} {{ total|currency('EUR') }} {{ at|date }} {{ n * 2 }} {{ c|plural('a', 'b') }}\
                  {% for i in items %}{{ i.title }} {{ i.price|number }}{% for t in i.tags %}{{ t }}{% endfor %}{% endfor %}\
                  {% if coupon is defined %}{{ coupon.code }}{% endif %}{% for x in empty %}{% endfor %}";
    let template = StandaloneTemplate::build(content(source)).unwrap();
    assert_eq!(
        template.variables(),
        [
            "at",
            "c",
            "coupon",
            "coupon.code",
            "empty",
            "items",
            "items[].price",
            "items[].tags",
            "items[].tags[]",
            "items[].title",
            "n",
            "total",
            "user.name"
        ]
    );
    let suggested = template.suggested_model();
    assert_eq!(
        Value::Object(suggested.clone())["items"],
        json!([{"price": 1, "tags": ["tags_value"], "title": "title_value"}])
    );
    template.render(&suggested, Some("de")).unwrap();
}

#[test]
fn rendering_with_an_empty_model_says_what_is_missing_and_json_cannot_break_out() {
    assert!(matches!(render("{{ a }}", json!({})), Err(RenderFailure::VariableMissing { .. })));
    let attack = json!({"a": "</script><script>alert(1)</script>"});
    let made = render("<script>var a = {{ a|tojson }};</script><p title=\"{{ a }}\">", attack).unwrap();
    assert_eq!(made.matches("</script>").count(), 1, "{made}");
}
