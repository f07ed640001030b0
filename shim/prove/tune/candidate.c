/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/tune/candidate.h"

#include <stdlib.h>
#include <string.h>

#include "shim/base/names.h"
#include "shim/base/size.h"
#include "shim/profile/profile.h"

void candidate_init(struct candidate *c)
{
    static const struct tune_choice none = TUNE_NO_RULE;

    memset(c, 0, sizeof(*c));
    memset(c->value, -1, sizeof(c->value));
    for (size_t i = 0; i < TUNE_CLASSES; i++)
        c->rule[i] = none;
}

bool tune_choice_equal(const struct tune_choice *a, const struct tune_choice *b)
{
    return a->algo == b->algo && a->proto == b->proto && a->channels == b->channels &&
           a->chunk == b->chunk;
}

bool candidate_same_settings(const struct candidate *a, const struct candidate *b)
{
    return !memcmp(a->value, b->value, sizeof(a->value));
}

bool candidate_equal(const struct candidate *a, const struct candidate *b)
{
    if (!candidate_same_settings(a, b))
        return false;
    for (size_t i = 0; i < TUNE_CLASSES; i++)
        if (!tune_choice_equal(&a->rule[i], &b->rule[i]))
            return false;
    return true;
}

int tune_choice_words(const struct tune_choice *c)
{
    return (c->algo >= 0) + (c->proto >= 0) + (c->channels > 0) + (c->chunk > 0);
}

bool tune_choice_empty(const struct tune_choice *c)
{
    return tune_choice_words(c) == 0;
}

const char *tune_choice_text(const struct tune_choice *c, char *buf, size_t size)
{
    char chunk[SIZE_TEXT_MAX];
    size_t n = 0;

    snprintf(buf, size, "no rule");
    if (c->algo >= 0)
        n += (size_t)snprintf(buf + n, size - n, "%s", algo_name((unsigned)c->algo));
    if (c->proto >= 0)
        n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? " " : "",
                              proto_name((unsigned)c->proto));
    if (c->channels)
        n += (size_t)snprintf(buf + n, size - n, "%schannels=%d", n ? " " : "", c->channels);
    if (c->chunk)
        snprintf(buf + n, size - n, "%schunk=%s", n ? " " : "",
                 size_text(c->chunk, chunk, sizeof(chunk)));
    return buf;
}

const char *candidate_rule_op(int op, char *buf, size_t size)
{
    size_t n = 0;

    for (const char *p = op_name((unsigned)op); *p && n + 1 < size; p++)
        if (*p != '_')
            buf[n++] = *p;
    buf[n] = '\0';
    return buf;
}

const char *candidate_text(const struct candidate *c, const struct tune_space *s,
                           const struct tune_work *w, char *buf, size_t size)
{
    char text[96], bytes[SIZE_TEXT_MAX];
    size_t n = 0;

    snprintf(buf, size, "NCCL's default");
    for (size_t i = 0; i < s->setting_count && n + 1 < size; i++)
        if (c->value[i] >= 0)
            n += (size_t)snprintf(buf + n, size - n, "%s%s=%s", n ? ", " : "", s->settings[i].name,
                                  s->settings[i].values[c->value[i]]);
    for (size_t i = 0; i < w->class_count && n + 1 < size; i++)
        if (!tune_choice_empty(&c->rule[i]))
            n += (size_t)snprintf(buf + n, size - n, "%s%s %s: %s", n ? ", " : "",
                                  op_name((unsigned)w->classes[i].op),
                                  size_text(w->classes[i].bytes, bytes, sizeof(bytes)),
                                  tune_choice_text(&c->rule[i], text, sizeof(text)));
    return buf;
}

void candidate_write(const struct candidate *c, const struct tune_space *s,
                     const struct tune_work *w, FILE *out)
{
    char op[32], text[96];

    fputs("[profile]\ndescription = a candidate of tune\n", out);
    for (int comm = 0; comm < 2; comm++) {
        bool any = false;
        for (size_t i = 0; i < s->setting_count; i++) {
            if (c->value[i] < 0 || s->settings[i].comm != (comm == 1))
                continue;
            fprintf(out, "%s%s = %s\n",
                    any    ? ""
                    : comm ? "[comm]\n"
                           : "[env]\n",
                    s->settings[i].name, s->settings[i].values[c->value[i]]);
            any = true;
        }
    }
    fputs("[tune]\n", out);
    for (size_t i = 0; i < w->class_count; i++)
        if (!tune_choice_empty(&c->rule[i]))
            fprintf(out, "%s %llu = %s\n", candidate_rule_op(w->classes[i].op, op, sizeof(op)),
                    (unsigned long long)w->classes[i].bytes,
                    tune_choice_text(&c->rule[i], text, sizeof(text)));
}

int candidate_check(const struct candidate *c, const struct tune_space *s,
                    const struct tune_work *w, struct error *e)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    struct profile *p;
    int rc;

    if (!out)
        return error_set(e, NULL, 0, "out of memory");
    candidate_write(c, s, w, out);
    fclose(out);
    rc = profile_parse(text, size, "candidate", &p, e);
    if (rc == 0)
        profile_free(p);
    free(text);
    return rc;
}
