/* SPDX-License-Identifier: Apache-2.0 */
/* From what was asked to what is played: the workload, the number of ranks, where each one runs. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "shim/profile/version.h"
#include "shim/prove/bench/bench.h"
#include "shim/prove/bench/gpu_api.h"

#define SIZES_DEFAULT "8K-64M"
#define BATCH_NS 2000000u /* long against the jitter of starting together, short against a repeat */

/* ---- ranks ----------------------------------------------------------------------------------- */

static int count_gpus(int *count, bool *simulated, const char *nccl, struct error *e)
{
    char name[64] = "";
    int device;

    if (gpuapi_load(nccl, e) < 0)
        return -1;
    GPUAPI_CU(e, init(0));
    GPUAPI_CU(e, device_count(count));
    *simulated = false;
    if (*count < 1)
        return error_set(e, NULL, 0, "the driver shows no GPU");
    GPUAPI_CU(e, device_get(&device, 0));
    GPUAPI_CU(e, device_name(name, (int)sizeof(name), device));
    *simulated = !strncmp(name, "Simulated", 9);
    return 0;
}

#define ONE_GPU_SINCE 23003

static int check_one_gpu(struct error *e)
{
    char text[VERSION_TEXT_MAX];
    int version = 0;

    GPUAPI_NC(e, version(&version));
    return version >= ONE_GPU_SINCE
               ? 0
               : error_set(e, NULL, 0,
                           "--one-gpu needs NCCL 2.30.3 or newer, this is %s; NCCLSHIM_NCCL names "
                           "another",
                           version_text(version, text, sizeof(text)));
}

/* Nobody told how many: as in the run, as many as there are, two on the simulator. */
static int choose_ranks(const struct bench_result *b, int gpus, bool simulated)
{
    int recorded = (int)b->w.ranks;

    if (b->o.one_gpu)
        return recorded ? recorded : 2;
    if (recorded && recorded <= gpus)
        return recorded;
    if (simulated && !recorded)
        return 2;
    return gpus < WORKLOAD_RANKS ? gpus : WORKLOAD_RANKS;
}

static int set_ranks(struct bench_result *b, struct bench_settings *set, struct error *e)
{
    bool simulated = false;
    int gpus = 0;

    if (set->launched) {
        set->ranks = set->launcher.ranks;
        set->first_rank = set->launcher.rank;
        set->local_ranks = 1;
        if (b->o.ranks && b->o.ranks != set->ranks)
            return error_set(e, NULL, 0, "--ranks %d, but %s started %d", b->o.ranks,
                             set->launcher.name, set->ranks);
        if (b->o.one_process)
            return error_set(e, NULL, 0,
                             "--one-process starts the ranks itself, but %s started %d processes",
                             set->launcher.name, set->ranks);
        return 0;
    }
    if (count_gpus(&gpus, &simulated, set->nccl, e) < 0)
        return -1;
    if (b->o.one_gpu && check_one_gpu(e) < 0)
        return -1;
    set->ranks = b->o.ranks ? b->o.ranks : choose_ranks(b, gpus, simulated);
    set->local_ranks = set->ranks;
    if (!b->o.ranks && set->ranks == 1)
        return error_set(e, NULL, 0,
                         "one GPU alone has nobody to talk to: --one-gpu puts two ranks on it "
                         "(NCCL 2.30.3 or newer), --ranks 1 runs one");
    if (!b->o.one_gpu && set->ranks > gpus)
        return error_set(e, NULL, 0,
                         "%d ranks need %d GPUs, the driver shows %d; --one-gpu puts all on one",
                         set->ranks, set->ranks, gpus);
    return 0;
}

/* ---- workload -------------------------------------------------------------------------------- */

/* Sizes depend on the number of ranks (all_gather, ...), so they are made when that is known. */
static int build_sizes(struct bench_result *b, const struct bench_settings *set, struct error *e)
{
    struct workload_sizes s = {.list = b->o.sizes ? b->o.sizes : SIZES_DEFAULT, .op = b->o.op,
                               .dtype = b->o.dtype, .ranks = set->ranks,
                               .eager = b->o.how != BENCH_GRAPH, .graph = b->o.how != BENCH_EAGER};

    return workload_from_sizes(&b->w, &s, e);
}

static void filter(struct bench_result *b)
{
    if (b->o.how == BENCH_GRAPH || b->o.how == BENCH_EAGER)
        workload_keep(&b->w, b->o.how == BENCH_GRAPH);
}

static void choose_nccl(const struct bench_result *b, struct bench_settings *set)
{
    const char *given = getenv("NCCLSHIM_NCCL");

    snprintf(set->nccl, sizeof(set->nccl), "%s",
             given && *given ? given : b->w.nccl[0] ? b->w.nccl : "libnccl.so.2");
}

int bench_build(struct bench_result *b, struct bench_settings *set, struct error *e)
{
    const struct bench_options *o = &b->o;
    int rc = bench_launcher_find(&set->launcher, e);

    if (rc < 0)
        return -1;
    set->launched = rc == 1 && set->launcher.ranks > 1;
    rc = o->from   ? workload_from_run(&b->w, o->from, e)
         : o->file ? workload_read(&b->w, o->file, e)
                   : 0;
    if (rc < 0)
        return -1;
    if (b->w.step_count)
        filter(b);
    choose_nccl(b, set);
    if (set_ranks(b, set, e) < 0 || (!o->from && !o->file && build_sizes(b, set, e) < 0))
        return -1;
    set->one_gpu = o->one_gpu;
    set->one_process = o->one_process || o->one_gpu;
    set->check = o->check;
    set->calls = o->calls;
    set->repeats = o->repeats;
    set->warmup = o->warmup;
    set->timeout_s = o->timeout_s;
    set->batch_ns = BATCH_NS;
    b->speaks = !set->launched || set->launcher.rank == 0;
    b->placement = o->one_gpu ? "one_gpu" : set->one_process ? "threads" : "processes";
    return workload_check(&b->w, set->ranks, e);
}
