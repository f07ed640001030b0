/* SPDX-License-Identifier: Apache-2.0 */
/* Invented machines for the tests of the search: how long each candidate takes is known. */
#ifndef TEST_UNIT_TEST_TUNE_WORLD_H
#define TEST_UNIT_TEST_TUNE_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/names.h"
#include "shim/prove/tune/tune_search.h"

/* ---- an invented machine ----------------------------------------------------------------------
 */

enum { ROWS = 3 }; /* 42K captured, 42K eager, 4M eager */

struct world {
    struct tune_space space;
    struct tune_work work;
    double setting[4][4][ROWS]; /* factor of each value of each setting on each row */
    double rule[8][4][8][ROWS]; /* of algorithm + 1, protocol + 1, place in channels + 1 */
    int hang_setting;           /* this setting's first value hangs; -1 = none */
    int wrong_proto;            /* rules with this protocol give wrong sums; -1 = none */
    double between, within;
    uint64_t state;
    unsigned runs, limit; /* limit: then the time is over; 0 = never */
    int stop_at;          /* this run is interrupted; -1 = none */
};

static double uniform(struct world *w)
{
    w->state = w->state * 6364136223846793005ull + 1442695040888963407ull;
    return (double)(w->state >> 11) / 9007199254740992.0;
}

static double normal(struct world *w)
{
    double x = 0;

    for (int i = 0; i < 12; i++)
        x += uniform(w) - 0.5;
    return x;
}

static size_t channels_place(const struct world *w, int channels)
{
    for (size_t i = 0; i < w->space.channel_count; i++)
        if (w->space.channels[i] == channels)
            return i + 1;
    return 0;
}

static double truth(const struct world *w, const struct candidate *c, size_t row)
{
    int class = w->work.rows[row].class;
    const struct tune_choice *r = &c->rule[class];
    double t = row == 2 ? 400e3 : 20e3;

    for (size_t i = 0; i < w->space.setting_count; i++)
        if (c->value[i] >= 0)
            t *= w->setting[i][c->value[i]][row];
    if (r->algo >= 0 || r->proto >= 0 || r->channels)
        t *= w->rule[r->algo + 1][r->proto + 1][channels_place(w, r->channels)][row];
    return t;
}

static int measure(void *user, const struct candidate *c, unsigned nth, struct tune_trial *out,
                   struct error *e)
{
    struct world *w = user;

    (void)nth;
    if (w->limit && w->runs >= w->limit)
        return NO_TIME;
    if ((int)w->runs == w->stop_at)
        return error_set(e, NULL, 0, "stopped");
    w->runs++;
    if (w->hang_setting >= 0 && c->value[w->hang_setting] == 0)
        out->end = TUNE_HUNG;
    for (size_t k = 0; k < w->work.class_count; k++)
        if (w->wrong_proto >= 0 && c->rule[k].proto == w->wrong_proto)
            out->end = TUNE_WRONG;
    for (size_t i = 0; i < w->work.row_count; i++) {
        out->rows[i].log_ns = log(truth(w, c, i)) + w->between * normal(w) + w->within * normal(w);
        out->rows[i].se = w->within;
    }
    return MEASURED;
}

static void make_work(struct world *w)
{
    static const struct {
        uint64_t bytes;
        bool graph;
        double share;
        int class;
    } rows[ROWS] = {{43008, true, 0.7, 0}, {43008, false, 0.1, 0}, {4 << 20, false, 0.2, 1}};

    for (size_t i = 0; i < ROWS; i++) {
        struct tune_row *r = &w->work.rows[i];
        strcpy(r->op, "all_reduce");
        r->bytes = rows[i].bytes;
        r->graph = rows[i].graph;
        r->share = rows[i].share;
        r->class = rows[i].class;
    }
    w->work.row_count = ROWS;
    w->work.classes[0] = (struct tune_class){OP_ALL_REDUCE, 43008};
    w->work.classes[1] = (struct tune_class){OP_ALL_REDUCE, 4 << 20};
    w->work.class_count = 2;
}

/* Where nothing makes a difference. */
static struct world *make_world(uint64_t seed)
{
    static const char text[] =
        "[env]\nNCCL_P2P_LEVEL = SYS\nNCCL_NTHREADS = 256\nNCCL_BUFFSIZE = 2M 8M\n"
        "[tune]\nalgorithm = ring tree\nprotocol = ll simple\nchannels = 2 8\n";
    struct world *w = calloc(1, sizeof(*w));
    struct error e;

    assert_non_null(w);
    assert_int_equal(space_parse(&w->space, text, "test", &e), 0);
    make_work(w);
    for (size_t i = 0; i < sizeof(w->setting) / sizeof(double); i++)
        ((double *)w->setting)[i] = 1;
    for (size_t i = 0; i < sizeof(w->rule) / sizeof(double); i++)
        ((double *)w->rule)[i] = 1;
    w->hang_setting = w->wrong_proto = w->stop_at = -1;
    w->between = 0.01;
    w->within = 0.003;
    w->state = seed * 7919 + 1;
    return w;
}

static void set_setting(struct world *w, size_t s, size_t v, double a, double b, double c)
{
    double f[ROWS] = {a, b, c};

    memcpy(w->setting[s][v], f, sizeof(f));
}

/* Whatever its channels: their own factor comes on top. */
static void set_rule(struct world *w, int algo, int proto, double small, double large)
{
    for (size_t n = 0; n < 8; n++) {
        w->rule[algo + 1][proto + 1][n][0] *= small;
        w->rule[algo + 1][proto + 1][n][1] *= small;
        w->rule[algo + 1][proto + 1][n][2] *= large;
    }
}

static struct tune_search *search(struct world *w)
{
    struct tune_search *t = calloc(1, sizeof(*t));
    struct error e = {0};

    assert_non_null(t);
    t->s = &w->space;
    t->w = &w->work;
    t->measure = measure;
    t->user = w;
    if (tune_search(t, &e) < 0)
        fail_msg("%s", e.text);
    return t;
}

static void done(struct tune_search *t, struct world *w)
{
    tune_search_free(t);
    free(t);
    free(w);
}

static double cost(const struct world *w, const struct candidate *c)
{
    struct candidate none;
    double sum = 0;

    candidate_init(&none);
    for (size_t i = 0; i < ROWS; i++)
        sum += w->work.rows[i].share * truth(w, c, i) / truth(w, &none, i);
    return sum;
}

static bool is_default(const struct candidate *c)
{
    struct candidate none;

    candidate_init(&none);
    return candidate_equal(c, &none);
}

#endif
