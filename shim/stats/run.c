/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/stats/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/names.h"

const struct run_gpu *run_gpu_of(const struct run_process *p, uint32_t ring)
{
    for (uint32_t i = 0; i < p->gpu_count; i++)
        if (p->gpus[i].ring == ring && p->gpus[i].gpu.stamp != UINT32_MAX)
            return &p->gpus[i];
    return NULL;
}

static char *command_of(const struct log_file *f)
{
    const struct ncclshim_note *n = NULL;
    char text[4096];

    while ((n = log_note_next(f, n))) {
        size_t length;
        if (n->type != NCCLSHIM_NOTE_COMMAND)
            continue;
        length = log_note_text(n, 0, text, sizeof(text));
        while (length && !text[length - 1])
            length--;
        for (size_t i = 0; i < length; i++)
            if (!text[i])
                text[i] = ' ';
        text[length] = '\0';
        return strdup(text);
    }
    return NULL;
}

static void take_profile(struct run *r, const struct log_file *f)
{
    const struct ncclshim_note *n = NULL;
    char text[4096];

    while (!r->profile && (n = log_note_next(f, n))) {
        size_t length, name;
        if (n->type != NCCLSHIM_NOTE_PROFILE)
            continue;
        length = log_note_text(n, 0, text, sizeof(text));
        r->profile = strdup(text);
        name = strlen(text);
        if (name + 1 < length && text[name + 1])
            r->profile_path = strdup(text + name + 1);
    }
}

static void take_gpus(struct run *r, const struct run_process *p)
{
    for (uint32_t i = 0; i < p->gpu_count; i++) {
        const struct run_gpu *g = &p->gpus[i];
        if (g->gpu.stamp == UINT32_MAX)
            continue;
        if (r->floor_ns < g->gpu.floor_ns)
            r->floor_ns = g->gpu.floor_ns;
        if (r->floor_max_ns < g->gpu.floor_max_ns)
            r->floor_max_ns = g->gpu.floor_max_ns;
        if (r->stamp == UINT32_MAX)
            r->stamp = g->gpu.stamp;
        else if (r->stamp != g->gpu.stamp)
            r->stamp = 255;
        if (!strncmp(g->name, "Simulated", 9))
            r->simulated = true;
    }
}

static void take_span(struct run *r, const struct accum *a)
{
    for (uint32_t s = 0; s < a->site_cap; s++) {
        const struct site_accum *site = &a->sites[s];
        if (!site->ns.count)
            continue;
        if (!r->first_ns || site->first_start_ns < r->first_ns)
            r->first_ns = site->first_start_ns;
        if (site->last_end_ns > r->last_ns)
            r->last_ns = site->last_end_ns;
    }
}

static void sum_up(struct run *r)
{
    uint64_t overwritten = 0;

    r->whole = r->closed = true;
    r->stamp = UINT32_MAX;
    for (uint32_t i = 0; i < r->process_count; i++) {
        const struct run_process *p = &r->processes[i];
        r->whole &= p->whole;
        r->closed &= p->log->head.state == NCCLSHIM_LOG_CLOSED;
        r->torn += p->acc.torn;
        overwritten += p->acc.lost;
        r->bad += p->acc.bad;
        r->unsited += p->log->head.sites_lost;
        if (!r->command)
            r->command = command_of(p->log);
        take_profile(r, p->log);
        take_gpus(r, p);
        take_span(r, &p->acc);
    }
    if (r->stamp == UINT32_MAX)
        r->stamp = NCCLSHIM_STAMP_NONE;
    for (uint32_t i = 0; i < r->row_count; i++) {
        const struct run_row *row = &r->rows[i];
        if (row->op == OP_GROUP) { /* no call of its own: its parts are counted */
            r->groups_timed += row->timed;
        } else {
            r->issued += row->issued;
            r->timed += row->timed;
        }
        r->lost += row->lost;
        r->unfinished += row->unfinished;
    }
    /* The ring's own count is exact. Rows can't know of a call site all of whose runs are gone. */
    if (overwritten > r->lost) {
        r->issued += overwritten - r->lost;
        r->lost = overwritten;
    }
}

static void set_name(struct run *r)
{
    const char *slash;
    size_t n = strlen(r->path);

    while (n > 1 && r->path[n - 1] == '/')
        r->path[--n] = '\0';
    slash = strrchr(r->path, '/');
    r->name = strdup(r->live ? "live" : slash && slash[1] ? slash + 1 : r->path);
}

int run_open(const char *path, bool live, const struct run_filter *filter, struct run **out,
             struct error *e)
{
    struct run *r = calloc(1, sizeof(*r));

    *out = NULL;
    if (!r)
        return error_set(e, path, 0, "out of memory");
    r->live = live;
    r->exit_code = r->signal = -1;
    r->path = strdup(path);
    if (r->path)
        set_name(r);
    if (!r->path || !r->name) {
        run_free(r);
        return error_set(e, path, 0, "out of memory");
    }
    if (run_load(r, filter, e) < 0) {
        run_free(r);
        return -1;
    }
    if (run_match_comms(r) < 0 || run_gather_rows(r, filter) < 0 || run_gather_passes(r) < 0) {
        run_free(r);
        return error_set(e, path, 0, "out of memory");
    }
    sum_up(r);
    *out = r;
    return 0;
}

static void free_process(struct run_process *p)
{
    log_free(p->log);
    accum_free(&p->acc);
    free(p->name);
    free(p->records_path);
    free(p->gpus);
    free(p->comm_of);
    free(p->row_of);
}

static void free_row(struct run_row *row, uint32_t members)
{
    hist_free(&row->ns);
    hist_free(&row->gap_ns);
    hist_free(&row->wait.transfer);
    for (uint32_t i = 0; i < members; i++)
        hist_free(&row->rank_ns[i]);
    free(row->rank_ns);
}

void run_free(struct run *r)
{
    if (!r)
        return;
    for (uint32_t i = 0; i < r->row_count; i++)
        free_row(&r->rows[i], r->comms[r->rows[i].comm].member_count);
    for (uint32_t i = 0; i < r->comm_count; i++)
        free(r->comms[i].members);
    for (uint32_t i = 0; i < r->pass_count; i++) {
        hist_free(&r->passes[i].pass_ns);
        hist_free(&r->passes[i].comm_ns);
        hist_free(&r->passes[i].period_ns);
    }
    for (uint32_t i = 0; i < r->process_count; i++)
        free_process(&r->processes[i]);
    free(r->rows);
    free(r->comms);
    free(r->passes);
    free(r->processes);
    free(r->path);
    free(r->name);
    free(r->command);
    free(r->profile);
    free(r->profile_path);
    free(r);
}
