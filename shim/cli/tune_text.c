/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "shim/cli/tune_show.h"
#include "shim/show/compare_show.h"
#include "shim/show/table.h"

static void proof_table(const struct tune *t, const struct term *term)
{
    struct table table;
    char text[UNIT_SIZE];

    table_init(&table);
    table_column(&table, "", TABLE_LEFT, 0);
    table_column(&table, "", 0, 0);
    table_column(&table, "", TABLE_LEFT, 0);
    table_column(&table, "default", 0, 0);
    table_column(&table, "winner", 0, 0);
    table_column(&table, "change", 0, 0);
    table_column(&table, "95 %", TABLE_LEFT, 1);
    table_column(&table, "", TABLE_LEFT, 0);
    for (size_t i = 0; i < t->work.row_count; i++) {
        const struct tune_row *r = &t->work.rows[i];
        const struct tune_proof_row *p = &t->proof[i];
        table_cell(&table, "%s", r->op);
        table_cell(&table, "%s", unit_bytes(r->bytes, text));
        table_cell(&table, "%s", r->graph ? "captured" : "eager");
        table_cell(&table, "%s", unit_ns((uint64_t)llround(exp(p->before.log_ns)), text));
        table_cell(&table, "%s", unit_ns((uint64_t)llround(exp(p->after.log_ns)), text));
        table_cell(&table, "%s", change_text(p->difference.change, text));
        table_cell(&table, "[%+.1f, %+.1f]", p->difference.low * 100, p->difference.high * 100);
        table_cell_colour(&table, verdict_colour(p->verdict), verdict_name(p->verdict));
    }
    table_print(&table, term, 0);
    table_free(&table);
}

static void dropped_lines(const struct tune *t, const struct term *term)
{
    char text[1024];

    for (size_t i = 0; i < t->all.count; i++) {
        const struct tune_trial *x = t->all.trials[i];
        if (x->end != TUNE_GOOD)
            fprintf(term->out, "dropped: %s %s: %s\n",
                    candidate_text(&x->c, &t->space, &t->work, text, sizeof(text)),
                    tune_end_text(x->end), x->why);
    }
}

void tune_text(const struct tune *t, const struct term *term)
{
    char text[1024];

    if (t->simulated)
        print_simulated(term);
    fprintf(term->out, "%zu benches in %.0f s, %u of them the proof\n", t->all.count,
            (double)tune_spent(t) / 1e9, 2 * t->proof_runs);
    dropped_lines(t, term);
    for (size_t i = 0; i < t->note_count; i++)
        print_wrapped(term, t->notes[i], 2);
    fprintf(term->out, "found: %s\n",
            candidate_text(&t->search.best, &t->space, &t->work, text, sizeof(text)));
    if (t->whole.known) {
        proof_table(t, term);
        fprintf(term->out,
                "proof: %u fresh runs of default and winner, shuffled; sums right in all\n",
                2 * t->proof_runs);
    }
    fprintf(term->out, "verdict: %s\n", t->verdict);
    if (t->written[0])
        fprintf(term->out, "wrote %s\n", t->written);
    else if (t->profile[0])
        fprintf(term->out,
                "wrote %s; use it with -p, or --write NAME puts it among your profiles\n",
                t->profile);
    else
        fprintf(term->out, "no profile was written\n");
    if (t->proven)
        fprintf(term->out, "see `ncclshim compare %s/default %s/winner`\n", t->folder.path,
                t->folder.path);
}
