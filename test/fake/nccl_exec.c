/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs on the simulated device: one kernel for everything that a communicator has in a group.
 *
 * NCCL lets no two of a communicator's kernels run side by side, whatever streams they are in.
 * Eager launches take a ticket and run in that order; captured ones are kept apart by NCCL's event
 * nodes, and where those are switched off (graph mixing) two at once are reported: real NCCL would
 * hang or mix up their data.
 *
 * Rules for what real NCCL does not check:
 *   - other function, count, type, operation or root than another rank: nothing is moved, one line
 * on stderr, asynchronous error ncclInvalidArgument on every rank;
 *   - other algorithm, protocol or channels than another rank: the same with ncclInternalError;
 *   - a rank that does not come within NCCLSHIM_FAKE_TIMEOUT seconds: ncclRemoteError.
 */
#include "test/fake/nccl_exec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

/* ---- knobs ---- */

#define WORD 512 /* a value may be a path */

static struct {
    pthread_once_t once;
    uint64_t skip_data; /* from a communicator's collective of this number on; 0 = never */
    int straggler_rank;
    uint64_t straggler_ns, straggler_every;
    char wrong[2][WORD], hang[2][WORD]; /* name, value */
} knobs = {.once = PTHREAD_ONCE_INIT, .straggler_rank = -1};

static void split_pair(const char *text, char pair[2][WORD])
{
    const char *eq = text ? strchr(text, '=') : NULL;
    if (!eq)
        return;
    snprintf(pair[0], WORD, "%.*s", (int)(eq - text), text);
    snprintf(pair[1], WORD, "%s", eq + 1);
}

static void read_knobs(void)
{
    knobs.skip_data = (uint64_t)fake_knob("NCCLSHIM_FAKE_SKIP_DATA", 0);
    const char *s = getenv("NCCLSHIM_FAKE_STRAGGLER");
    unsigned long long ns = 0, every = 1;
    if (s && sscanf(s, "%d:%llu:%llu", &knobs.straggler_rank, &ns, &every) >= 2) {
        knobs.straggler_ns = ns;
        knobs.straggler_every = every ? every : 1;
    }
    split_pair(getenv("NCCLSHIM_FAKE_WRONG"), knobs.wrong);
    split_pair(getenv("NCCLSHIM_FAKE_HANG"), knobs.hang);
}

/* Is the setting in force for this call: by the choice made for it, or by what NCCL was told. */
static bool applies(char pair[2][WORD], const struct fake_choice *c, bool coll)
{
    if (!pair[0][0])
        return false;
    if (coll && !strcmp(pair[0], "NCCL_PROTO") && !strcasecmp(pair[1], fake_proto_words[c->proto]))
        return true;
    if (coll && !strcmp(pair[0], "NCCL_ALGO") && !strcasecmp(pair[1], fake_algo_words[c->algo]))
        return true;
    const char *value = fake_getenv(pair[0]);
    return value && !strcmp(value, pair[1]);
}

/* ---- the kernel ---- */

static void fail(ncclComm_t comm, ncclResult_t res)
{
    int none = ncclSuccess;
    atomic_compare_exchange_strong(&comm->async, &none, (int)res);
}

/* The rendezvous broke: by an abort of this rank, or because a peer did not come. */
static uint64_t give_up(ncclComm_t comm, const struct plan_op *op, uint64_t t)
{
    comm->broken = true;
    if (!atomic_load(&comm->abort_flag)) {
        fake_complain("rank %d of %d gave up on %s number %llu: not all ranks came", comm->rank,
                      comm->nranks, fake_func_name(op->func), (unsigned long long)comm->exec_seq);
        fail(comm, ncclRemoteError);
    }
    return t;
}

static void hang(ncclComm_t comm)
{
    for (int i = 0; i < 60000 && !atomic_load(&comm->abort_flag); i++)
        usleep(10000);
    comm->broken = true;
}

static bool skips(const struct ncclComm *comm)
{
    return knobs.skip_data && comm->exec_seq + 1 >= knobs.skip_data;
}

static uint64_t run_coll(ncclComm_t comm, const struct plan_op *op, uint64_t arrival)
{
    bool skip = skips(comm);
    comm->exec_seq++;
    if (comm->rank == knobs.straggler_rank && comm->exec_seq % knobs.straggler_every == 0)
        arrival += knobs.straggler_ns;
    if (op->hang) {
        hang(comm);
        return arrival;
    }
    if (comm->nranks == 1) {
        fake_move_alone(op);
        return arrival + op->duration_ns;
    }
    uint64_t latest = arrival;
    switch (fake_move_coll(comm, op, arrival, skip, &latest)) {
    case MOVED:
        return latest + op->duration_ns +
               fake_noise_ns(op->duration_ns, comm->nranks, comm->exec_seq);
    case MISMATCH:
        fail(comm, ncclInvalidArgument);
        return latest;
    case OTHER_CHOICE:
        fail(comm, ncclInternalError);
        return latest;
    case BROKEN:
        break;
    }
    return give_up(comm, op, arrival);
}

static uint64_t run_messages(struct fake_plan *plan, int first, uint64_t arrival)
{
    ncclComm_t comm = plan->comm;
    int n = plan->nops - first;
    uint64_t end = arrival;
    struct fake_msg *msgs = calloc((size_t)n, sizeof(*msgs));
    for (int i = 0; i < n; i++) {
        const struct plan_op *op = &plan->ops[first + i];
        bool send = op->func == ncclFuncSend;
        msgs[i] = (struct fake_msg){.is_send = send,
                                    .peer = op->root,
                                    .bytes = op->bytes,
                                    .arrival_ns = arrival,
                                    .buff = send ? (char *)(uintptr_t)op->send : op->recv};
    }
    bool ok = fake_shm_messages(comm->shm, comm->rank, msgs, n, skips(comm));
    for (int i = 0; i < n && ok; i++) {
        uint64_t t = (msgs[i].peer_arrival_ns > arrival ? msgs[i].peer_arrival_ns : arrival) +
                     plan->ops[first + i].duration_ns;
        end = t > end ? t : end;
        if (msgs[i].mismatch) {
            fake_complain(
                "%s of rank %d with rank %d: the two sides name different sizes (%zu bytes here)",
                msgs[i].is_send ? "send" : "receive", comm->rank, msgs[i].peer, msgs[i].bytes);
            fail(comm, ncclInvalidArgument);
        }
    }
    free(msgs);
    return ok ? end : give_up(comm, &plan->ops[first], arrival);
}

/* Eager launches in the order of their tickets; anything else after what is running. */
static void enter(struct fake_plan *plan)
{
    ncclComm_t comm = plan->comm;
    bool told = false;
    pthread_mutex_lock(&comm->exec_lock);
    while ((plan->ticket && comm->tickets_done + 1 != plan->ticket) || comm->busy) {
        if (!plan->ticket && comm->busy && !told) {
            told = true;
            fake_complain("communicator %p, rank %d: a graph launch while another launch of the "
                          "communicator is still "
                          "running%s; NCCL would hang or give wrong data",
                          (void *)comm, comm->rank,
                          comm->machine.graph_mixing ? ""
                                                     : " (NCCL_GRAPH_MIXING_SUPPORT=0 forbids it)");
        }
        pthread_cond_wait(&comm->exec_cond, &comm->exec_lock);
    }
    comm->busy = true;
    pthread_mutex_unlock(&comm->exec_lock);
}

static void leave(struct fake_plan *plan, uint64_t end)
{
    ncclComm_t comm = plan->comm;
    pthread_mutex_lock(&comm->exec_lock);
    comm->busy = false;
    if (plan->ticket)
        comm->tickets_done = plan->ticket;
    if (end > comm->last_end_ns)
        comm->last_end_ns = end;
    pthread_cond_broadcast(&comm->exec_cond);
    pthread_mutex_unlock(&comm->exec_lock);
}

static uint64_t run_plan(void *arg, uint64_t start)
{
    struct fake_plan *plan = arg;
    ncclComm_t comm = plan->comm;
    enter(plan);
    uint64_t t = start > comm->last_end_ns ? start : comm->last_end_ns;
    int i = 0;
    for (; i < plan->nops && plan->ops[i].func <= ncclFuncAllReduce && !comm->broken; i++)
        t = run_coll(comm, &plan->ops[i], t);
    if (i < plan->nops && !comm->broken && !atomic_load(&comm->abort_flag))
        t = run_messages(plan, i, t);
    leave(plan, t);
    return t;
}

static void release_plan(void *arg)
{
    struct fake_plan *plan = arg;
    ncclComm_t comm = plan->comm;
    pthread_mutex_lock(&comm->exec_lock);
    --*(plan->captured ? &comm->persistent : &comm->inflight);
    pthread_cond_broadcast(&comm->exec_cond);
    pthread_mutex_unlock(&comm->exec_lock);
    free(plan);
    fake_comm_unref(comm);
}

/* ---- the launch ---- */

/* Names as a profiler of kernels would show them. They stay: the driver keeps no copy. */
static const char *kernel_name(const struct fake_task *t)
{
    static char names[FAKE_NUM_FUNCS][FAKE_NUM_ALGOS][FAKE_NUM_PROTOS][64];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (t->func > ncclFuncAllReduce)
        return FAKE_VER >= 22003 ? "ncclDevKernel_SendRecv"
                                 : "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t";
    char *name = names[t->func][t->choice.algo][t->choice.proto];
    pthread_mutex_lock(&lock);
    if (!*name)
        snprintf(name, 64,
                 FAKE_VER >= 22003 ? "ncclDevKernel_%s_Sum_%s_%s" : "ncclKernel_%s_%s_%s_Sum",
                 fake_func_name(t->func), fake_algo_name(t->choice.algo),
                 fake_proto_name(t->choice.proto));
    pthread_mutex_unlock(&lock);
    return name;
}

static void fill(struct plan_op *op, const struct fake_task *t)
{
    const struct ncclComm *comm = t->comm;
    bool coll = t->func <= ncclFuncAllReduce && comm->nranks > 1;
    bool total = t->func == ncclFuncAllGather || t->func == ncclFuncReduceScatter;
    size_t bytes = t->count * fake_type_size(t->type);
    *op = (struct plan_op){.func = t->func,
                           .send = t->send,
                           .recv = t->recv,
                           .count = t->count,
                           .type = t->type,
                           .op = t->op,
                           .root = t->root,
                           .bytes = bytes};
    uint64_t key[] = {t->func, t->type, t->op.op, t->op.premul, (uint64_t)(int64_t)t->root};
    op->key = fake_hash(key, sizeof(key), 5);
    op->choice = (uint64_t)t->choice.algo | (uint64_t)t->choice.proto << 8 |
                 (uint64_t)t->choice.nchannels << 16;
    op->duration_ns = fake_duration_ns(comm, t->func, bytes * (total ? (size_t)comm->nranks : 1),
                                       &t->choice, t->captured);
    op->wrong = applies(knobs.wrong, &t->choice, coll);
    op->hang = applies(knobs.hang, &t->choice, coll);
}

ncclResult_t fake_exec_launch(ncclComm_t comm, CUstream stream, struct fake_task *tasks,
                              bool captured)
{
    int n = 0;
    pthread_once(&knobs.once, read_knobs);
    for (struct fake_task *t = tasks; t; t = t->next)
        n++;
    struct fake_plan *plan = malloc(sizeof(*plan) + (size_t)n * sizeof(plan->ops[0]));
    *plan = (struct fake_plan){.comm = comm, .captured = captured, .nops = n};
    n = 0;
    for (struct fake_task *t = tasks; t; t = t->next)
        fill(&plan->ops[n++], t);
    atomic_fetch_add(&comm->refs, 1);
    pthread_mutex_lock(&comm->exec_lock);
    plan->ticket = captured ? 0 : ++comm->tickets;
    ++*(captured ? &comm->persistent : &comm->inflight);
    pthread_mutex_unlock(&comm->exec_lock);
    CUresult res = fake_cu.launch(stream, kernel_name(tasks), run_plan, plan, release_plan);
    if (res == CUDA_SUCCESS)
        return ncclSuccess;
    pthread_mutex_lock(&comm->exec_lock);
    if (plan->ticket && comm->tickets == plan->ticket)
        comm->tickets--;
    pthread_mutex_unlock(&comm->exec_lock);
    release_plan(plan);
    return fake_cu_check(res, "cuLaunchKernel");
}

void fake_exec_wait_idle(ncclComm_t comm, bool graphs_too)
{
    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += fake_knob("NCCLSHIM_FAKE_TIMEOUT", 60) + 1;
    pthread_mutex_lock(&comm->exec_lock);
    while (comm->inflight || (graphs_too && comm->persistent))
        if (pthread_cond_timedwait(&comm->exec_cond, &comm->exec_lock, &deadline)) {
            fake_complain("communicator %p, rank %d: %d launches and %d graphs of it are still "
                          "alive; NCCL would wait "
                          "for ever",
                          (void *)comm, comm->rank, comm->inflight, comm->persistent);
            break;
        }
    pthread_mutex_unlock(&comm->exec_lock);
}
