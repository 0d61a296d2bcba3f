"""Contrast of all that the style sheet colours, by the formula of WCAG 2, from the fallbacks of its variables."""

import re

import pytest

from tests.views.test_html import STYLE

# Text and ground of pages: a white one, JupyterLab's dark theme, high contrast; and their grounds for code.
PAGES = {
    "light": ("#212121", "#ffffff", "#eeeeee"),
    "dark": ("#ffffff", "#111111", "#424242"),
    "high contrast": ("#ffffff", "#000000", "#000000"),
    "black on white": ("#000000", "#ffffff", "#ffffff"),
}
TONES = ("hint", "warning", "error")
TEXT, GRAPHICS = 4.5, 3.0


def channels(colour):
    digits = colour.removeprefix("#")
    return [int(digits[at : at + 2], 16) for at in range(0, 6, 2)]


def luminance(colour):
    parts = [value / 255 for value in channels(colour)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def over(colour, ground, opacity):
    """The colour that is seen when one lies on another."""
    mixed = zip(channels(colour), channels(ground), strict=True)
    return "#" + "".join(f"{round(opacity * top + (1 - opacity) * below):02x}" for top, below in mixed)


def rules():
    """Selectors and declarations of the style sheet."""
    found = re.findall(r"([^{}]+)\{([^}]*)\}", STYLE.read_text(encoding="utf-8"))
    return [(selector.strip(), dict(re.findall(r"([\w-]+):\s*([^;]+);", body))) for selector, body in found]


def tone(name):
    return next(body["--ti-tone"] for selector, body in rules() if selector == f".ti-{name}")


def test_formula_is_right():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("name", TONES)
def test_marks_of_severity_are_seen(name, page):
    assert contrast(tone(name), PAGES[page][1]) >= GRAPHICS


@pytest.mark.parametrize("page", PAGES)
def test_faint_text_is_read(page):
    text, *grounds = PAGES[page]
    faint = [float(body["opacity"]) for _, body in rules() if "opacity" in body]
    assert faint
    for ground in grounds:
        assert all(contrast(over(text, ground, opacity), ground) >= TEXT for opacity in faint)


@pytest.mark.parametrize("page", PAGES)
def test_text_on_the_ground_of_code_without_a_theme(page):
    text, ground, _ = PAGES[page]
    (background,) = (body["background"] for selector, body in rules() if selector == ".ti-card pre")
    ((red, green, blue, alpha),) = re.findall(r"#(\w)(\w)(\w)(\w)$", background)
    assert contrast(text, over(f"#{2 * red}{2 * green}{2 * blue}", ground, int(2 * alpha, 16) / 255)) >= TEXT


def test_text_takes_the_colour_of_the_page():
    named = {
        (selector, body["color"])
        for selector, body in rules()
        if "color" in body and body["color"] != "inherit" and selector != ".ti-shape"
    }
    assert named == set()


def test_pages_of_this_test_are_themselves_read():
    assert all(contrast(text, ground) >= TEXT for text, *grounds in PAGES.values() for ground in grounds)
