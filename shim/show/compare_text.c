/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/grow.h"
#include "shim/base/names.h"
#include "shim/show/compare_show.h"
#include "shim/show/table.h"

#define ROWS_SHOWN 16

const char *change_text(double change, char *buf)
{
    double v = change * 100;
    int decimals = fabs(v) < 99.95 ? 1 : 0;

    snprintf(buf, UNIT_SIZE, "%+.*f %%", decimals, fabs(v) < 0.05 ? 0.0 : v);
    return buf;
}

static const char *interval_text(const struct difference *d, char *buf)
{
    int decimals = fabs(d->high) < 0.9995 && fabs(d->low) < 0.9995 ? 1 : 0;

    snprintf(buf, UNIT_SIZE, "[%+.*f, %+.*f]", decimals, d->low * 100, decimals, d->high * 100);
    return buf;
}

enum colour verdict_colour(enum verdict v)
{
    return v == VERDICT_FASTER ? COLOUR_GREEN : v == VERDICT_SLOWER ? COLOUR_RED : COLOUR_NONE;
}

/* "A" for the first side; the command takes no more than 26. */
static const char *letter_of(size_t side)
{
    static const char letters[] =
        "A\0B\0C\0D\0E\0F\0G\0H\0I\0J\0K\0L\0M\0N\0O\0P\0Q\0R\0S\0T\0U\0V\0W\0X\0Y\0Z";

    return letters + 2 * (side % 26);
}

/* ---- settings -------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct setting_change *)a)->name,
                  ((const struct setting_change *)b)->name);
}

static bool have(const struct setting_changes *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++)
        if (!strcmp(s->items[i].name, name))
            return true;
    return false;
}

static int add_change(struct setting_changes *out, const struct compare *c,
                      const struct run_settings *settings, const char *name)
{
    struct setting_change *more, change = {0};
    bool differs = false;

    change.values = calloc(c->side_count, sizeof(*change.values));
    if (!change.values)
        return -1;
    snprintf(change.name, sizeof(change.name), "%s", name);
    for (size_t s = 0; s < c->side_count; s++) {
        const struct run_setting *item = run_setting_named(&settings[s], name);
        const struct run_setting_value *v = item ? run_setting_usual(item, c->sides[s].runs[0]) : NULL;
        change.values[s] = v ? v->value : NULL;
        if (!change.values[s] != !change.values[0] ||
            (change.values[s] && strcmp(change.values[s], change.values[0])))
            differs = true;
    }
    more = differs ? GROW(out->items, out->count) : NULL;
    if (!more) {
        free(change.values);
        return differs ? -1 : 0;
    }
    *more = change;
    return 0;
}

int setting_changes_make(const struct compare *c, const struct run_settings *settings,
                         struct setting_changes *out)
{
    memset(out, 0, sizeof(*out));
    for (size_t s = 0; s < c->side_count; s++)
        for (size_t i = 0; i < settings[s].count; i++)
            if (!have(out, settings[s].items[i].name) &&
                add_change(out, c, settings, settings[s].items[i].name) < 0)
                return -1;
    if (out->count)
        qsort(out->items, out->count, sizeof(*out->items), by_name);
    return 0;
}

void setting_changes_free(struct setting_changes *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->items[i].values);
    free(s->items);
    memset(s, 0, sizeof(*s));
}

static void print_changes(const struct compare *c, const struct setting_changes *s,
                          const struct term *t)
{
    struct table table;

    if (!s->count)
        return;
    fprintf(t->out, "\n%ssettings that differ%s\n", term_on(t, COLOUR_BOLD), term_off(t));
    table_init(&table);
    table_column(&table, "variable", TABLE_LEFT, 0);
    for (size_t i = 0; i < c->side_count && i < TABLE_COLUMNS - 1; i++)
        table_column(&table, letter_of(i), TABLE_LEFT | TABLE_FLEXIBLE, 0);
    for (size_t k = 0; k < s->count; k++) {
        table_cell(&table, "%s", s->items[k].name);
        for (size_t i = 0; i < c->side_count && i < TABLE_COLUMNS - 1; i++)
            table_cell(&table, "%s", s->items[k].values[i] ? s->items[k].values[i] : "(not set)");
    }
    table_print(&table, t, 2);
    table_free(&table);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void side_line(const struct compare *c, size_t side, const struct term *t)
{
    const struct compare_side *s = &c->sides[side];
    const struct run *r = s->runs[0];
    char text[4200], safe[4400], n[UNIT_SIZE], several[40] = "";
    uint64_t timed = 0;

    for (size_t i = 0; i < s->run_count; i++)
        timed += s->runs[i]->timed;
    if (s->run_count > 1)
        snprintf(several, sizeof(several), ", %zu runs", s->run_count);
    snprintf(text, sizeof(text), "%s: profile %s%s, %s calls timed, %s", s->label,
             r->profile && r->profile[0] ? r->profile : "none", several, unit_count(timed, n),
             run_state(r));
    fprintf(t->out, "%s%c%s  ", term_on(t, COLOUR_BOLD), *letter_of(side), term_off(t));
    print_wrapped(t, safe_text(text, safe, sizeof(safe)), 3);
}

/* What NCCL chose: once where both sides agree, else "ring ll 2 -> tree ll 4". */
static const char *choices_of(const struct compare_value *a, const struct compare_value *b,
                              char *buf, size_t size)
{
    struct run_row x = {.algo = a->algo, .proto = a->proto, .channels = a->channels};
    struct run_row y = {.algo = b->algo, .proto = b->proto, .channels = b->channels};
    char first[64], second[64];

    choice_label(&x, first, sizeof(first));
    choice_label(&y, second, sizeof(second));
    if (!strcmp(first, second))
        snprintf(buf, size, "%s", first);
    else
        snprintf(buf, size, "%s -> %s", first, second);
    return buf;
}

/* The estimate that the change was worked out from, which is finer than the histogram. */
static const char *value_text(const struct compare_value *v, double q, char *buf)
{
    const struct estimate *e = q > 0.5 ? &v->p99 : &v->median;

    if (!v->ns.count)
        return "-";
    return unit_ns(e->known ? (uint64_t)(exp(e->log_ns) + 0.5) : hist_quantile(&v->ns, q), buf);
}

static void quantile_cells(struct table *table, const struct compare_row *r,
                           const struct compare_test *t, size_t side, double q)
{
    const struct hist *a = &r->values[0].ns, *b = &r->values[side].ns;
    char text[UNIT_SIZE];

    table_cell(table, "%s", value_text(&r->values[0], q, text));
    table_cell(table, "%s", value_text(&r->values[side], q, text));
    table_cell(table, "%s", t->difference.known ? change_text(t->difference.change, text) : "-");
    table_cell(table, "%s", t->difference.known ? interval_text(&t->difference, text) : "");
    table_cell_colour(table, verdict_colour(t->verdict),
                      !a->count || !b->count ? (a->count   ? "only in A"
                                                : b->count ? "not in A"
                                                           : "not timed")
                                             : verdict_name(t->verdict));
}

static void print_side(const struct compare *c, size_t side, const struct term *t, bool all)
{
    struct table table;
    char bytes[UNIT_SIZE], choice[140], share[UNIT_SIZE];
    const char *title = letter_of(side);

    table_init(&table);
    table_column(&table, "operation", TABLE_LEFT, 0);
    table_column(&table, "size", 0, 0);
    table_column(&table, "how", TABLE_LEFT, 1);
    table_column(&table, "", TABLE_LEFT, 0);
    table_column(&table, "A", 0, 0);
    table_column(&table, title, 0, 0);
    table_column(&table, "change", 0, 0);
    table_column(&table, "95 %", TABLE_LEFT, 3);
    table_column(&table, "", TABLE_LEFT, 0);
    table_column(&table, "share", 0, 4);
    table_column(&table, "algo proto ch", TABLE_LEFT, 5);
    for (size_t i = 0; i < c->row_count && (all || i < ROWS_SHOWN); i++) {
        const struct compare_row *r = &c->rows[i];
        table_cell(&table, "%s", op_name(r->op));
        table_cell(&table, "%s", unit_bytes(r->bytes, bytes));
        table_cell(&table, "%s", r->captured ? "captured" : "eager");
        table_cell(&table, "p50");
        quantile_cells(&table, r, &r->median[side], side, 0.5);
        table_cell(&table, "%s", unit_percent(r->share, share));
        table_cell(&table, "%s",
                   choices_of(&r->values[0], &r->values[side], choice, sizeof(choice)));
        for (unsigned k = 0; k < 3; k++)
            table_cell(&table, "%s", "");
        table_cell(&table, "p99");
        quantile_cells(&table, r, &r->p99[side], side, 0.99);
        for (unsigned k = 0; k < 2; k++)
            table_cell(&table, "%s", "");
    }
    table_print(&table, t, 2);
    table_free(&table);
    if (!all && c->row_count > ROWS_SHOWN)
        fprintf(t->out, "  ... and %zu more kinds of call: --all\n", c->row_count - ROWS_SHOWN);
}

const char *whole_text(const struct compare *c, size_t side, char *buf, size_t size)
{
    const struct compare_whole *w = &c->whole[side];
    char change[UNIT_SIZE], interval[UNIT_SIZE], letter = *letter_of(side);
    int n;

    switch (w->verdict) {
    case VERDICT_UNKNOWN:
        snprintf(buf, size, "no verdict: too few calls on record on both sides");
        return buf;
    case VERDICT_NONE:
        n = snprintf(buf, size, "no difference shown between A and %c", letter);
        break;
    case VERDICT_MIXED:
        n = snprintf(buf, size, "mixed: %c is faster in some kinds of call and slower in others",
                     letter);
        break;
    default:
        n = snprintf(buf, size, "%c is %s", letter, verdict_name(w->verdict));
    }
    if (w->time.known && n > 0 && (size_t)n < size)
        snprintf(buf + n, size - (size_t)n, "; communication time for A's calls %s %s",
                 change_text(w->time.change, change), interval_text(&w->time, interval));
    return buf;
}

void compare_text(const struct compare *c, const struct setting_changes *s, const struct term *t,
                  bool all)
{
    char text[300];
    bool simulated = false;

    for (size_t i = 0; i < c->side_count; i++)
        for (size_t k = 0; k < c->sides[i].run_count; k++)
            simulated |= c->sides[i].runs[k]->simulated;
    if (simulated)
        print_simulated(t);
    for (size_t i = 0; i < c->side_count; i++)
        side_line(c, i, t);
    for (size_t i = 1; i < c->side_count; i++) {
        fputc('\n', t->out);
        print_side(c, i, t, all);
    }
    print_changes(c, s, t);
    fputc('\n', t->out);
    for (size_t i = 1; i < c->side_count; i++) {
        fprintf(t->out, "%sverdict%s   %s", term_on(t, COLOUR_BOLD), term_off(t),
                term_on(t, verdict_colour(c->whole[i].verdict)));
        print_wrapped(t, whole_text(c, i, text, sizeof(text)), 10);
        fputs(term_off(t), t->out);
    }
}
