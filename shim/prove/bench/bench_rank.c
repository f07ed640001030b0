/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/bench/bench_rank.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/prove/bench/bench_values.h"

extern char **environ;

/* One thread that keeps the GPU busy for so many nanoseconds: the work between two collectives. */
static const char spin_ptx[] = ".version 6.0\n"
                               ".target sm_60\n"
                               ".address_size 64\n"
                               ".visible .entry ncclshim_bench_spin(.param .u64 p_ns)\n"
                               "{\n"
                               "    .reg .pred %p;\n"
                               "    .reg .u64 %start, %now, %limit;\n"
                               "    ld.param.u64 %limit, [p_ns];\n"
                               "    mov.u64 %start, %globaltimer;\n"
                               "again:\n"
                               "    mov.u64 %now, %globaltimer;\n"
                               "    sub.u64 %now, %now, %start;\n"
                               "    setp.lt.u64 %p, %now, %limit;\n"
                               "    @%p bra again;\n"
                               "    ret;\n"
                               "}\n";

#define HOST_BYTES (1u << 20) /* bench_check.c compares so much at once */

void bench_rank_at(struct bench_rank *r, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(r->slot->where, sizeof(r->slot->where), fmt, ap);
    va_end(ap);
    atomic_fetch_add(&r->slot->progress, 1);
}

/* ---- set-up ---------------------------------------------------------------------------------- */

/* Which GPU: the only one, the launcher's, or the one with the rank's number. */
static int choose_device(struct bench_rank *r)
{
    const struct bench_settings *set = r->set;
    int count = 0,
        local = set->launched && set->launcher.local_rank >= 0 ? set->launcher.local_rank : r->rank;

    GPUAPI_CU(r->e, device_count(&count));
    if (count < 1)
        return error_set(r->e, NULL, 0, "the driver shows no GPU");
    if (!set->one_gpu && !set->launched && r->rank >= count)
        return error_set(r->e, NULL, 0, "rank %d has no GPU: the driver shows %d", r->rank, count);
    /*
     * A launcher may have given each rank a GPU of its own (CUDA_VISIBLE_DEVICES): then there is
     * one.
     */
    GPUAPI_CU(r->e, device_get(&r->device, set->one_gpu ? 0 : local % count));
    return 0;
}

static int set_up_device(struct bench_rank *r)
{
    uint64_t ns = 0;
    void *params[] = {&ns};

    bench_rank_at(r, "opening the GPU");
    if (choose_device(r) < 0)
        return -1;
    GPUAPI_CU(r->e, device_name(r->gpu, (int)sizeof(r->gpu), r->device));
    r->simulated = !strncmp(r->gpu, "Simulated", 9);
    GPUAPI_CU(r->e, primary_retain(&r->ctx, r->device));
    GPUAPI_CU(r->e, ctx_set(r->ctx));
    GPUAPI_CU(r->e, stream_create(&r->stream, GPUAPI_STREAM_NON_BLOCKING));
    GPUAPI_CU(r->e, module_load(&r->module, spin_ptx));
    GPUAPI_CU(r->e, module_function(&r->spin, r->module, "ncclshim_bench_spin"));
    /* A kernel is loaded at its first launch, which may wait for the device: now it is idle. */
    GPUAPI_CU(r->e, launch(r->spin, 1, 1, 1, 1, 1, 1, 0, r->stream, params, NULL));
    bench_rank_at(r, "allocating %llu bytes on the GPU", (unsigned long long)r->plan.arena_bytes);
    GPUAPI_CU(r->e, mem_alloc(&r->arena, r->plan.arena_bytes));
    GPUAPI_CU(r->e, fill(r->arena, 0, r->plan.arena_bytes, r->stream));
    GPUAPI_CU(r->e, stream_sync(r->stream));
    return 0;
}

static int set_up_host(struct bench_rank *r)
{
    uint32_t rows = r->plan.row_count + 1;

    r->got = malloc(HOST_BYTES);
    r->want = malloc(HOST_BYTES);
    r->tile = malloc(BENCH_PERIOD * 8);
    r->wrong = calloc(rows, sizeof(*r->wrong));
    r->gpu_ns = calloc(2 * (size_t)rows, sizeof(*r->gpu_ns));
    r->batch = calloc(rows, sizeof(*r->batch));
    r->samples = calloc((size_t)rows * r->set->repeats, sizeof(*r->samples));
    r->execs = calloc(r->plan.unit_count + 1, sizeof(gpuapi_exec));
    r->events = calloc(2 * BENCH_EVENT_CALLS, sizeof(gpuapi_event));
    return r->got && r->want && r->tile && r->wrong && r->gpu_ns && r->batch && r->samples &&
                   r->execs && r->events
               ? 0
               : error_set(r->e, NULL, 0, "out of memory");
}

static int set_up_events(struct bench_rank *r)
{
    GPUAPI_CU(r->e, event_create(&r->span[0], GPUAPI_EVENT_DEFAULT));
    GPUAPI_CU(r->e, event_create(&r->span[1], GPUAPI_EVENT_DEFAULT));
    for (; r->set->events && r->event_count < 2 * BENCH_EVENT_CALLS; r->event_count++)
        GPUAPI_CU(r->e, event_create(&r->events[r->event_count], GPUAPI_EVENT_DEFAULT));
    return 0;
}

/* ---- communicators --------------------------------------------------------------------------- */

/* The first rank of each group makes its id; everyone gets all of them. */
static int connect_comm(struct bench_rank *r, uint32_t c)
{
    const struct workload_comm *wc = &r->w.comms[c];
    struct bench_member *m = &r->members[c];
    gpuapi_id id, all[WORKLOAD_RANKS];
    int first = 0, n = 0;

    memset(&id, 0, sizeof(id));
    m->rank = workload_place(wc, r->set->ranks, r->rank, &m->ranks);
    if (m->rank == 0)
        GPUAPI_NC(r->e, unique_id(&id));
    if (bench_meet_exchange(&r->meet, &id, sizeof(id), all, r->e) < 0)
        return -1;
    if (m->rank < 0)
        return 0;
    while (first < r->rank &&
           !(workload_place(wc, r->set->ranks, first, &n) == 0 &&
             (wc->groups == 0 || wc->group_of[first] == wc->group_of[r->rank])))
        first++;
    bench_rank_at(r, "ncclCommInitRank of communicator %s", wc->name);
    GPUAPI_NC(r->e, comm_init(&m->comm, m->ranks, all[first], m->rank));
    return 0;
}

static int connect_all(struct bench_rank *r)
{
    for (uint32_t c = 0; c < r->w.comm_count; c++)
        if (connect_comm(r, c) < 0 || bench_meet_barrier(&r->meet, r->e) < 0)
            return -1;
    return 0;
}

/* As servers do before they capture: NCCL connects and loads kernels at its first call of a kind.
 */
static int first_calls(struct bench_rank *r)
{
    for (uint32_t i = 0; i < r->plan.unit_count; i++) {
        const struct bench_unit *u = &r->plan.units[i];
        struct bench_unit once = {.first = u->first, .count = 1};

        while (once.count < u->count && r->plan.ops[once.first].opens &&
               !r->plan.ops[once.first + once.count - 1].closes)
            once.count++;
        bench_rank_at(r, "the first call of %s",
                      op_name(r->w.steps[r->plan.ops[u->first].step].op));
        if (bench_issue_unit(r, &once) < 0 || bench_sync(r) < 0)
            return -1;
    }
    return bench_meet_barrier(&r->meet, r->e);
}

static int prepare(struct bench_rank *r)
{
    if (set_up_host(r) < 0 || set_up_device(r) < 0 || set_up_events(r) < 0 ||
        bench_meet_barrier(&r->meet, r->e) < 0 || connect_all(r) < 0)
        return -1;
    if (!r->set->one_gpu && first_calls(r) < 0)
        return -1;
    if (bench_capture_all(r) < 0 || bench_meet_barrier(&r->meet, r->e) < 0)
        return -1;
    return r->set->one_gpu ? first_calls(r) : 0;
}

/* ---- what came out --------------------------------------------------------------------------- */

/* Sum of every rank's count of wrong elements; *any tells whether there was one. */
static int gather_wrong(struct bench_rank *r, bool *any)
{
    uint64_t all[WORKLOAD_RANKS], sum;

    *any = false;
    for (uint32_t i = 0; i <= r->plan.row_count; i++) {
        if (bench_meet_exchange(&r->meet, &r->wrong[i], sizeof(uint64_t), all, r->e) < 0)
            return -1;
        sum = 0;
        for (int q = 0; q < r->meet.ranks; q++)
            sum += all[q];
        *any = *any || sum;
        if (r->rank == 0 && i < r->plan.row_count)
            bench_share_row(r->share, i)->wrong = sum;
    }
    return 0;
}

static int check(struct bench_rank *r, bool *wrong)
{
    *wrong = false;
    if (!r->set->check)
        return 0;
    if (bench_check_all(r) < 0)
        return -1;
    bench_rank_at(r, "bringing the checks together");
    return gather_wrong(r, wrong);
}

static void copy_env(char *to, size_t room)
{
    for (char **v = environ; *v; v++) {
        size_t n = strlen(*v);

        if (strncmp(*v, "NCCL", 4) != 0 || n + 2 > room)
            continue;
        memcpy(to, *v, n);
        to[n] = '\n';
        to += n + 1;
        room -= n + 1;
    }
    *to = '\0';
}

static int deliver(struct bench_rank *r, bool timed)
{
    struct bench_outcome *out = &r->share->out;
    uint64_t all[WORKLOAD_RANKS];

    if (bench_meet_exchange(&r->meet, &r->checked, sizeof(uint64_t), all, r->e) < 0)
        return -1;
    if (r->rank != 0)
        return 0;
    for (int q = 0; q < r->meet.ranks; q++)
        out->checked += all[q];
    memcpy(out->gpu, r->gpu, sizeof(out->gpu));
    GPUAPI_CU(r->e, driver_version(&out->driver));
    GPUAPI_NC(r->e, version(&out->nccl));
    out->simulated = r->simulated;
    copy_env(out->env, sizeof(out->env));
    for (uint32_t i = 0; timed && i < r->plan.row_count; i++) {
        bench_share_row(r->share, i)->gpu_p50_ns = r->gpu_ns[2 * i];
        bench_share_row(r->share, i)->gpu_p99_ns = r->gpu_ns[2 * i + 1];
    }
    for (uint32_t m = 0; timed && m < r->share->measure_count; m++)
        memcpy(bench_share_samples(r->share, m), r->samples + (size_t)m * r->set->repeats,
               r->set->repeats * sizeof(double));
    out->timed = timed;
    out->filled = true;
    return 0;
}

/* ---- the end --------------------------------------------------------------------------------- */

static int tear_down(struct bench_rank *r)
{
    bench_rank_at(r, "ending");
    if (bench_sync(r) < 0 || bench_meet_barrier(&r->meet, r->e) < 0)
        return -1;
    for (uint32_t i = 0; i < r->plan.unit_count; i++)
        if (r->execs[i])
            GPUAPI_CU(r->e, exec_destroy(r->execs[i]));
    for (uint32_t i = 0; i < r->event_count; i++)
        GPUAPI_CU(r->e, event_destroy(r->events[i]));
    GPUAPI_CU(r->e, event_destroy(r->span[0]));
    GPUAPI_CU(r->e, event_destroy(r->span[1]));
    for (uint32_t c = 0; c < r->w.comm_count; c++)
        if (r->members[c].comm)
            GPUAPI_NC(r->e, comm_destroy(r->members[c].comm));
    if (bench_meet_barrier(&r->meet, r->e) < 0)
        return -1;
    GPUAPI_CU(r->e, mem_free(r->arena));
    GPUAPI_CU(r->e, module_unload(r->module));
    GPUAPI_CU(r->e, stream_destroy(r->stream));
    GPUAPI_CU(r->e, primary_release(r->device));
    return 0;
}

static void free_host(struct bench_rank *r)
{
    free(r->got);
    free(r->want);
    free(r->tile);
    free(r->wrong);
    free(r->gpu_ns);
    free(r->batch);
    free(r->samples);
    free(r->execs);
    free(r->events);
    bench_plan_free(&r->plan);
}

static int work(struct bench_rank *r, bool *wrong)
{
    bool before = false, after = false;

    r->e->text[0] = '\0'; /* what went wrong while we looked for the others went right in the end */
    if (prepare(r) < 0 || check(r, &before) < 0)
        return -1;
    if (!before) {
        if (bench_warm_up(r) < 0 || bench_time_all(r) < 0 ||
            (r->set->events && bench_time_events(r) < 0) || check(r, &after) < 0)
            return -1;
    }
    *wrong = before || after;
    return deliver(r, !before) < 0 ? -1 : tear_down(r);
}

static int meet_others(struct bench_rank *r)
{
    r->meet = (struct bench_meet){.rank = r->rank, .ranks = r->set->ranks, .shm = &r->share->shm};
    memset(r->meet.fds, 0xff, sizeof(r->meet.fds));
    if (!r->set->launched)
        return 0;
    bench_rank_at(r, "looking for the other ranks");
    return bench_meet_connect(&r->meet, r->set,
                              workload_digest(&r->w) + r->set->repeats * 31u + r->set->calls * 7u +
                                  r->set->warmup * 3u + r->set->check,
                              r->e);
}

int bench_rank_run(struct bench_share *share, int rank)
{
    struct bench_slot *slot = &share->slots[rank];
    struct bench_rank r = {.share = share,
                           .set = &share->set,
                           .rank = rank,
                           .slot = slot,
                           .e = &slot->error,
                           .w = bench_share_workload(share)};
    struct bench_plan_options o = {.ranks = share->set.ranks, .calls = share->set.calls,
                                   .rows = share->set.rows, .pass = share->set.pass};
    bool wrong = false;
    int rc = bench_plan_make(&r.plan, &r.w, &o, r.e);

    if (rc == 0)
        rc = meet_others(&r);
    if (rc == 0)
        rc = work(&r, &wrong);
    atomic_store(&slot->state, rc < 0 ? BENCH_FAILED : wrong ? BENCH_WRONG : BENCH_DONE);
    if (rc < 0) {
        bench_meet_fail(&r.meet);
        return -1;
    }
    if (share->set.launched)
        bench_meet_close(&r.meet);
    free_host(&r);
    return 0;
}
