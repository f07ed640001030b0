/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/show/term.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define NARROWEST 40
#define USUAL_WIDTH 80

static int width_of(FILE *out)
{
    const char *given = getenv("COLUMNS");
    struct winsize w;
    int columns = given ? atoi(given) : 0;

    if (columns <= 0 && ioctl(fileno(out), TIOCGWINSZ, &w) == 0)
        columns = w.ws_col;
    if (columns <= 0)
        columns = USUAL_WIDTH;
    return columns < NARROWEST ? NARROWEST : columns;
}

struct term term_of(FILE *out)
{
    const char *no_colour = getenv("NO_COLOR"), *type = getenv("TERM");
    struct term t = {.out = out, .width = width_of(out)};

    t.colour = isatty(fileno(out)) && !(no_colour && no_colour[0]) && type && strcmp(type, "dumb");
    return t;
}

const char *term_on(const struct term *t, enum colour c)
{
    static const char *const codes[] = {
        [COLOUR_NONE] = "",        [COLOUR_BOLD] = "\033[1m",   [COLOUR_DIM] = "\033[2m",
        [COLOUR_RED] = "\033[31m", [COLOUR_GREEN] = "\033[32m", [COLOUR_YELLOW] = "\033[33m",
    };

    return t->colour ? codes[c] : "";
}

const char *term_off(const struct term *t)
{
    return t->colour ? "\033[0m" : "";
}

/* ---- harmless text --------------------------------------------------------------------------- */

/* One character; returns its bytes, 0 when they are no UTF-8. */
static size_t decode(const unsigned char *s, uint32_t *c)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = s[0] < 0x80             ? 1
               : (s[0] & 0xe0) == 0xc0 ? 2
               : (s[0] & 0xf0) == 0xe0 ? 3
               : (s[0] & 0xf8) == 0xf0 ? 4
                                       : 0;

    if (!n)
        return 0;
    *c = n == 1 ? s[0] : s[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        *c = *c << 6 | (s[i] & 0x3f);
    }
    if (*c < least[n] || *c > 0x10ffff || (*c >= 0xd800 && *c <= 0xdfff))
        return 0;
    return n;
}

static bool harmful(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x061c || (c >= 0x200b && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
           (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe007f);
}

const char *safe_text(const char *text, char *buf, size_t size)
{
    size_t at = 0;

    while (*text) {
        char piece[16];
        uint32_t c;
        size_t n = decode((const unsigned char *)text, &c), length;
        if (!n)
            length = (size_t)snprintf(piece, sizeof(piece), "\\x%02x", (unsigned char)*text);
        else if (harmful(c))
            length = (size_t)snprintf(piece, sizeof(piece), c < 0x80 ? "\\x%02x" : "\\u{%x}", c);
        else
            memcpy(piece, text, length = n);
        if (at + length + 1 > size)
            break;
        memcpy(buf + at, piece, length);
        at += length;
        text += n ? n : 1;
    }
    if (size)
        buf[at] = '\0';
    return buf;
}

/* East Asian wide letters and emoji take two columns; the ranges that terminals agree on. */
static size_t columns_of(uint32_t c)
{
    if ((c >= 0x300 && c <= 0x36f) || (c >= 0xfe00 && c <= 0xfe0f))
        return 0;
    if ((c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf) ||
        (c >= 0xac00 && c <= 0xd7a3) || (c >= 0xf900 && c <= 0xfaff) ||
        (c >= 0xfe30 && c <= 0xfe6f) || (c >= 0xff00 && c <= 0xff60) ||
        (c >= 0x1f300 && c <= 0x1faff) || (c >= 0x20000 && c <= 0x3fffd))
        return 2;
    return 1;
}

size_t text_columns(const char *text)
{
    size_t sum = 0, n;
    uint32_t c;

    for (; *text; text += n) {
        if (!(n = decode((const unsigned char *)text, &c))) {
            n = 1;
            c = '?';
        }
        sum += columns_of(c);
    }
    return sum;
}

size_t text_fit(const char *text, size_t columns)
{
    const char *start = text;
    size_t n, sum = 0;
    uint32_t c;

    for (; *text; text += n) {
        if (!(n = decode((const unsigned char *)text, &c))) {
            n = 1;
            c = '?';
        }
        sum += columns_of(c);
        if (sum > columns)
            break;
    }
    return (size_t)(text - start);
}

void print_wrapped(const struct term *t, const char *text, int indent)
{
    int at = indent;
    bool first = true;

    while (*text) {
        size_t n = strcspn(text, " ");
        char word[512];
        int columns;
        if (n == 0) {
            text++;
            continue;
        }
        if (n >= sizeof(word))
            n = sizeof(word) - 1;
        memcpy(word, text, n);
        word[n] = '\0';
        columns = (int)text_columns(word);
        if (!first && at + 1 + columns > t->width) {
            fprintf(t->out, "\n%*s", indent, "");
            at = indent;
            first = true;
        }
        fprintf(t->out, "%s%s", first ? "" : " ", word);
        at += columns + !first;
        first = false;
        text += n;
    }
    fputc('\n', t->out);
}

void print_title(const struct term *t, const char *text, const char *rest)
{
    bool fits = text_columns(text) + text_columns(rest) + 1 <= (size_t)t->width;

    fprintf(t->out, "\n%s%s%s", term_on(t, COLOUR_BOLD), text, term_off(t));
    if (fits) {
        fprintf(t->out, "%s%s\n", rest[0] ? " " : "", rest);
        return;
    }
    fputs("\n  ", t->out);
    print_wrapped(t, rest, 2);
}

void print_simulated(const struct term *t)
{
    fputs(term_on(t, COLOUR_YELLOW), t->out);
    print_wrapped(t, "SIMULATED: no GPU took part; times come from the stand-in driver", 0);
    fputs(term_off(t), t->out);
}
