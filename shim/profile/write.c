/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/profile/write.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "shim/base/names.h"
#include "shim/base/size.h"
#include "shim/profile/reader.h"
#include "shim/profile/source.h"

const char *config_field_value(const struct comm_section *c, int field, char *buf, size_t size)
{
    if (config_fields[field].text)
        return c->text[field];
    snprintf(buf, size, "%d", c->number[field]);
    return buf;
}

static bool needs_quotes(const char *v)
{
    size_t n = strlen(v);

    return !n || strchr(" \t;", v[0]) || strchr(" \t", v[n - 1]) || v[0] == '\'' ||
           v[n - 1] == '\'' || value_has_comment(v);
}

/* A line near the limit of 64 KiB must not grow over it by our blanks. */
static void write_key(const char *key, const char *value, FILE *out)
{
    const char *quote = needs_quotes(value) ? "\"" : "";
    const char *equals = strlen(key) + strlen(value) + 8 > SOURCE_LINE_MAX ? "=" : " = ";

    fprintf(out, "%s%s%s%s%s\n", key, equals, quote, value, quote);
}

static void write_range(const char *before, const char *key, int min, int max, FILE *out)
{
    if (min == 0 && max == INT_MAX)
        return;
    fprintf(out, "%s%s = %d", before, key, min);
    if (max == INT_MAX)
        fputs("-", out);
    else if (max != min)
        fprintf(out, "-%d", max);
    fputc('\n', out);
}

void condition_write(const struct comm_condition *c, const char *before, FILE *out)
{
    write_range(before, "ranks", c->ranks_min, c->ranks_max, out);
    write_range(before, "nodes", c->nodes_min, c->nodes_max, out);
    write_range(before, "index", c->index_min, c->index_max, out);
    if (c->name) {
        fputs(before, out);
        write_key("name", c->name, out);
    }
    if (c->parent) {
        fputs(before, out);
        write_key("parent", c->parent, out);
    }
}

static void write_profile(const struct profile *p, FILE *out)
{
    fputs("[profile]\n", out);
    if (*p->description)
        write_key("description", p->description, out);
    if (p->nccl.text)
        write_key("nccl", p->nccl.text, out);
    fprintf(out, "allow_unsafe = %s\n", p->allow_unsafe ? "yes" : "no");
    for (size_t i = 0; i < p->allow_unknown_count; i++)
        fprintf(out, "%s%s", i ? ", " : "allow_unknown = ", p->allow_unknown[i]);
    if (p->allow_unknown_count)
        fputc('\n', out);
}

static void write_env(const struct profile *p, bool override, FILE *out)
{
    bool any = false;

    for (size_t i = 0; i < p->env_count; i++) {
        if (p->env[i].override != override)
            continue;
        if (!any)
            fputs(override ? "\n[env override]\n" : "\n[env]\n", out);
        any = true;
        write_key(p->env[i].name, p->env[i].value, out);
    }
}

/* A condition that always holds has to be written all the same: a named section needs one. */
static void write_section_condition(const struct comm_condition *c, FILE *out)
{
    struct comm_condition any;

    condition_any(&any);
    if (condition_covers(c, &any))
        fputs("ranks = 1-\n", out);
    else
        condition_write(c, "", out);
}

static void write_comm(const struct comm_section *c, FILE *out)
{
    if (*c->label) {
        fprintf(out, "\n[comm %s]\n", c->label);
        write_section_condition(&c->when, out);
    } else {
        fputs("\n[comm]\n", out);
    }
    for (int i = 0; i < CONFIG_FIELD_COUNT; i++)
        if (c->set & 1u << i) {
            if (config_fields[i].text)
                write_key(config_fields[i].key, c->text[i], out);
            else
                fprintf(out, "%s = %d\n", config_fields[i].key, c->number[i]);
        }
    for (size_t i = 0; i < c->env_count; i++)
        write_key(c->env[i].name, c->env[i].value, out);
}

void tune_rule_write(const struct tune_rule *t, FILE *out)
{
    char low[SIZE_TEXT_MAX], high[SIZE_TEXT_MAX];

    fputs(op_name((unsigned)t->op), out);
    if (t->bytes_min || t->bytes_max != UINT64_MAX)
        fprintf(out, " %s-%s", size_text(t->bytes_min, low, sizeof(low)),
                t->bytes_max == UINT64_MAX ? "" : size_text(t->bytes_max, high, sizeof(high)));
    fputs(" =", out);
    if (t->algo >= 0)
        fprintf(out, " %s", algo_name((unsigned)t->algo));
    if (t->proto >= 0)
        fprintf(out, " %s", proto_name((unsigned)t->proto));
    if (t->channels)
        fprintf(out, " channels=%d", t->channels);
    if (t->chunk_bytes)
        fprintf(out, " chunk=%s", size_text(t->chunk_bytes, low, sizeof(low)));
}

static bool label_taken(const struct profile *p, size_t before, const char *label)
{
    for (size_t i = 0; i < before; i++)
        if (!strcmp(p->tune[i].label, label))
            return true;
    return false;
}

static bool same_condition(const struct comm_condition *a, const struct comm_condition *b)
{
    return condition_covers(a, b) && condition_covers(b, a);
}

/*
 * Rules count in the order of the file, so each stretch of rules with one condition becomes a
 * section of its own; after inheritance there may be several for all communicators, and only one
 * can be [tune].
 */
static void write_tune(const struct profile *p, FILE *out)
{
    for (size_t i = 0; i < p->tune_count; i++) {
        const struct tune_rule *t = &p->tune[i];
        if (!i || strcmp(t->label, t[-1].label) || !same_condition(&t->when, &t[-1].when) ||
            t->place.file != t[-1].place.file) {
            if (label_taken(p, i, t->label))
                fprintf(out, "\n[tune rules-%zu]\n", i);
            else
                fprintf(out, "\n[tune%s%s]\n", *t->label ? " " : "", t->label);
            if (*t->label || label_taken(p, i, t->label))
                write_section_condition(&t->when, out);
        }
        tune_rule_write(t, out);
        fputc('\n', out);
    }
}

static void write_ops(uint32_t ops, FILE *out)
{
    const char *comma = "";

    fputs("ops = ", out);
    for (unsigned i = 0; i < OP_COUNT; i++)
        if (ops & 1u << i) {
            fprintf(out, "%s%s", comma, op_name(i));
            comma = ", ";
        }
    fputc('\n', out);
}

static void write_log(const struct log_options *log, FILE *out)
{
    char size[SIZE_TEXT_MAX];

    if (!log->set)
        return;
    fputs("\n[log]\n", out);
    if (log->set & LOG_SET_SAMPLE)
        fprintf(out, "sample = %" PRIu32 "\n", log->sample);
    if (log->set & LOG_SET_CAPACITY)
        fprintf(out, "capacity = %s\n", size_text(log->capacity, size, sizeof(size)));
    if (log->set & LOG_SET_MIN_BYTES)
        fprintf(out, "min_bytes = %s\n", size_text(log->min_bytes, size, sizeof(size)));
    if (log->set & LOG_SET_EAGER)
        fprintf(out, "eager = %s\n", log->eager ? "yes" : "no");
    if (log->set & LOG_SET_CAPTURED)
        fprintf(out, "captured = %s\n", log->captured ? "yes" : "no");
    if (log->set & LOG_SET_OPS)
        write_ops(log->ops, out);
}

int profile_write(const struct profile *p, FILE *out)
{
    write_profile(p, out);
    write_env(p, false, out);
    write_env(p, true, out);
    for (size_t i = 0; i < p->comm_count; i++)
        write_comm(&p->comm[i], out);
    write_tune(p, out);
    write_log(&p->log, out);
    return ferror(out) ? -1 : 0;
}
