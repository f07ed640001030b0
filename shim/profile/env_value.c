/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/profile/env_value.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "shim/base/names.h"
#include "shim/base/size.h"
#include "shim/profile/choice.h"

struct conversion {
    const struct nccl_var *v;
    const char *text;
    char **out;
    char *why;
    size_t size;
};

static int refuse(const struct conversion *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static int refuse(const struct conversion *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(c->why, c->size, fmt, ap);
    va_end(ap);
    return -1;
}

static int keep(const struct conversion *c, const char *text)
{
    *c->out = strdup(text);
    return *c->out ? 0 : refuse(c, "out of memory");
}

static int keep_number(const struct conversion *c, int64_t n)
{
    char buf[32];

    snprintf(buf, sizeof(buf), "%" PRId64, n);
    return keep(c, buf);
}

/* What strtoll with base 0 makes of it, as NCCL calls it. */
static long long as_nccl(const char *text)
{
    return strtoll(text, NULL, 0);
}

static int no_number(const struct conversion *c)
{
    char range[128];

    nccl_var_range_text(c->v, range, sizeof(range));
    return refuse(c, "NCCL would read %lld; write a plain number%s (%s)", as_nccl(c->text),
                  c->v->type == VAR_BYTES ? ", with K, M or G for powers of 1024" : "", range);
}

static int out_of_range(const struct conversion *c, int64_t n)
{
    char range[128];
    bool note = *c->v->note != '\0';

    nccl_var_range_text(c->v, range, sizeof(range));
    return refuse(c, "%" PRId64 " is out of range: write %s%s%s%s", n, range,
                  note ? " (NCCL: " : "", note ? c->v->note : "", note ? ")" : "");
}

/*
 * Decimal without leading zeros, or 0x. `suffix`: a K, M or G is allowed. 0; 1 = no number; 2 = a
 * size suffix where there may be none.
 */
static int read_number(const char *text, bool suffix, int64_t *out)
{
    bool negative = *text == '-';
    const char *digits = text + negative;
    uint64_t n;
    char *end;

    if (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X')) {
        if (!digits[2] || strspn(digits + 2, "0123456789abcdefABCDEF") != strlen(digits + 2))
            return 1;
        errno = 0;
        n = strtoull(digits, &end, 16);
        if (errno)
            return 1;
    } else if (size_parse(digits, &n) || (digits[0] == '0' && digits[1])) {
        return 1;
    } else if (!suffix && strspn(digits, "0123456789") != strlen(digits)) {
        return 2;
    }
    if (n > INT64_MAX)
        return 1;
    *out = negative ? -(int64_t)n : (int64_t)n;
    return 0;
}

static int convert_number(const struct conversion *c)
{
    int64_t n;
    int bad = read_number(c->text, c->v->type == VAR_BYTES, &n);

    if (bad == 2)
        return refuse(c,
                      "NCCL would read %lld: K, M and G are for sizes in bytes, and this is "
                      "none; write the plain number",
                      as_nccl(c->text));
    if (bad)
        return no_number(c);
    if (n != c->v->automatic && (n < c->v->least || n > c->v->most))
        return out_of_range(c, n);
    return keep_number(c, n);
}

/* Is `text` one of "A|B|C", letters in any case? */
static bool in_words(const char *words, const char *text, size_t n)
{
    for (const char *w = words; *w;) {
        size_t len = strcspn(w, "|");
        if (len == n && !strncasecmp(w, text, n))
            return true;
        w += len + (w[len] == '|');
    }
    return false;
}

static int convert_word(const struct conversion *c)
{
    if (in_words(c->v->words, c->text, strlen(c->text)))
        return keep(c, c->text);
    return refuse(c, "'%.60s' is none of its words (%s)", c->text, c->v->words);
}

static int convert_level(const struct conversion *c)
{
    static const char *const names[] = {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                        "P2C", "PXN", "PHB", "SYS", NULL};
    const char *near;

    for (int i = 0; names[i]; i++)
        if (!strcasecmp(names[i], c->text))
            return keep(c, names[i]);
    if (c->text[0] >= '0' && c->text[0] <= '5' && !c->text[1])
        return keep(c, c->text);
    near = nearest_name(c->text, names);
    return refuse(c,
                  "'%.40s' is no distance, NCCL would take it for unset; write one of LOC NVL "
                  "NVB C2C PIX PXB P2C PXN PHB SYS%s%s",
                  c->text, near ? "; nearest: " : "", near ? near : "");
}

static int convert_choice(const struct conversion *c)
{
    struct choice ignored;
    bool proto = c->v->type == VAR_PROTO;
    char *value = strdup(c->text);

    if (!value)
        return refuse(c, "out of memory");
    choice_trim(value);
    if (choice_parse(value, proto, &ignored, c->why, c->size)) {
        free(value);
        return -1;
    }
    *c->out = value;
    return 0;
}

static int convert_subsys(const struct conversion *c)
{
    static const char words[] =
        "INIT|COLL|P2P|SHM|NET|GRAPH|TUNING|ENV|ALLOC|ALLOC_HOST|CALL|PROXY|"
        "NVLS|BOOTSTRAP|REG|PROFILE|RAS|DESTROY|ALL";
    char *value = strdup(c->text);

    if (!value)
        return refuse(c, "out of memory");
    choice_trim(value);
    for (const char *w = value + (*value == '^');; w++) {
        size_t n = strcspn(w, ",");
        if (!in_words(words, w, n)) {
            refuse(c, "'%.*s' is no subsystem, NCCL would skip it; there are %s",
                   n < 40 ? (int)n : 40, w, words);
            free(value);
            return -1;
        }
        w += n;
        if (!*w)
            break;
    }
    *c->out = value;
    return 0;
}

static int convert_policy(const struct conversion *c)
{
    const char *w = c->text;

    if (w[0] >= '0' && w[0] <= '2' && !w[1])
        return keep(c, c->text);
    for (;; w++) {
        size_t n = strcspn(w, "|");
        if (!in_words("DEFAULT|EFFICIENCY|ZERO", w, n))
            return refuse(c, "write 0, 1 or 2, or DEFAULT, EFFICIENCY, ZERO joined by |");
        w += n;
        if (!*w)
            return keep(c, c->text);
    }
}

static int convert_netdevs(const struct conversion *c)
{
    const char *t = c->text;

    if (!strcasecmp(t, "AUTO") || !strcasecmp(t, "ALL"))
        return keep(c, t);
    if (!strncasecmp(t, "MAX:", 4) && t[4] >= '1' && t[4] <= '9' &&
        strspn(t + 4, "0123456789") == strlen(t + 4) && strlen(t) < 12)
        return keep(c, t);
    return refuse(c, "write AUTO, ALL or MAX:n");
}

static int convert_thresholds(const struct conversion *c)
{
    char *copy = strdup(c->text), *save = NULL;
    int count = 0, bad = 0;
    int64_t n;

    if (!copy)
        return refuse(c, "out of memory");
    for (char *w = strtok_r(copy, " \t", &save); w; w = strtok_r(NULL, " \t", &save), count++)
        bad |= read_number(w, false, &n);
    free(copy);
    if (bad || count < 1 || count > 6)
        return refuse(c, "write one to six plain numbers with blanks between them (tree LL, LL128, "
                         "Simple, then ring LL, LL128, Simple)");
    return keep(c, c->text);
}

/* Blanks around commas are never meant. */
static int convert_list(const struct conversion *c)
{
    char *to, *value = strdup(c->text);

    if (!value)
        return refuse(c, "out of memory");
    to = value;
    for (const char *t = c->text; *t; t++) {
        size_t blanks = strspn(t, " \t");
        if (blanks && (t[blanks] == ',' || (to > value && to[-1] == ','))) {
            t += blanks - 1;
            continue;
        }
        *to++ = *t;
    }
    *to = '\0';
    *c->out = value;
    return 0;
}

static int convert(const struct conversion *c)
{
    switch (c->v->type) {
    case VAR_BOOL:
    case VAR_INT:
    case VAR_BYTES:
        return convert_number(c);
    case VAR_WORD:
        return convert_word(c);
    case VAR_LEVEL:
        return convert_level(c);
    case VAR_ALGO:
    case VAR_PROTO:
        return convert_choice(c);
    case VAR_SUBSYS:
        return convert_subsys(c);
    case VAR_CTA_POLICY:
        return convert_policy(c);
    case VAR_NETDEVS:
        return convert_netdevs(c);
    case VAR_THRESHOLDS:
        return convert_thresholds(c);
    case VAR_LIST:
        return convert_list(c);
    case VAR_PLUGIN:
        if (strlen(c->text) > 254)
            return refuse(c, "NCCL cuts a plugin's path at 254 letters; use a shorter one");
        return keep(c, c->text);
    case VAR_PATH:
    case VAR_TEXT:
    case VAR_ANY:
        break;
    }
    return keep(c, c->text);
}

/* Kinds of text for which an empty one can be meant. */
static bool may_be_empty(const struct nccl_var *v)
{
    return v->type == VAR_LIST || v->type == VAR_PATH || v->type == VAR_PLUGIN ||
           v->type == VAR_TEXT || v->type == VAR_ANY;
}

int env_value_convert(const struct nccl_var *v, const struct clean_value *in, char **out, char *why,
                      size_t why_size)
{
    struct conversion c = {v, in->text, out, why, why_size};

    *out = NULL;
    if (!*in->text && !may_be_empty(v))
        return refuse(&c, "the value is empty, which NCCL takes for unset; leave the line out");
    if (!in->quoted && v->type != VAR_ALGO && v->type != VAR_PROTO && value_has_comment(in->text) &&
        may_be_empty(v))
        return refuse(&c, "is what follows the blank a comment? In this section a comment stands "
                          "on a line of its own; quote the value if it belongs to it");
    if (!convert(&c))
        return 0;
    if (!in->quoted && value_has_comment(in->text)) {
        size_t n = strlen(why);
        snprintf(why + n, why_size - n, "; a comment stands on a line of its own here");
    }
    return -1;
}

int env_value_misread(const struct nccl_var *v, const char *text, char *why, size_t why_size)
{
    struct clean_value in = {(char *)text, true};
    char *seen;
    int rc;

    if (!*text)
        return 0; /* NCCL takes it for unset, and so do people */
    if (env_value_convert(v, &in, &seen, why, why_size))
        return -1;
    rc = strcmp(seen, text);
    if (rc && (v->type == VAR_BOOL || v->type == VAR_INT || v->type == VAR_BYTES))
        rc = as_nccl(text) != as_nccl(seen);
    if (rc && v->type == VAR_BYTES)
        snprintf(why, why_size, "NCCL reads %lld; write %s", as_nccl(text), seen);
    else if (rc && v->type == VAR_LEVEL)
        snprintf(why, why_size, "NCCL takes it for unset; write %s", seen);
    else if (rc)
        snprintf(why, why_size, "for NCCL the blanks belong to the names; write %s", seen);
    free(seen);
    return rc ? -1 : 0;
}
