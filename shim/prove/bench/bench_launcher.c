/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/bench/bench_launcher.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/digest.h"

struct family {
    const char *name, *rank, *ranks, *local_rank;
    const char *also; /* must be set too */
};

/* torchrun first: it may itself be started by srun or mpirun, one on each host. */
static const struct family families[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     NULL},
    {"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", NULL},
    /* The batch script itself has the first two as well, but is no step. */
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_STEP_ID"},
};

static int number_of(const char *name, int least, int most, int *out, struct error *e)
{
    const char *text = getenv(name);
    char *end;
    long n;

    errno = 0;
    n = strtol(text, &end, 10);
    if (errno || end == text || *end || n < least || n > most)
        return error_set(e, NULL, 0, "%s='%s' is no number from %d to %d", name, text, least, most);
    *out = (int)n;
    return 0;
}

static const char *value_of(const char *name)
{
    const char *v = getenv(name);

    return v && *v ? v : NULL;
}

/* ---- where to meet --------------------------------------------------------------------------- */

/* What all ranks of the job have alike and no other job of this host has. */
static uint64_t job_digest(const struct bench_launcher *l)
{
    static const char *const names[] = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "SLURM_JOB_ID",
                                        "SLURM_STEP_ID", "PMI_JOBID", "TORCHELASTIC_RUN_ID"};
    uint64_t h = digest_bytes(DIGEST_START, l->name, strlen(l->name));
    int session = (int)getsid(0);
    size_t seen = 0;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *v = value_of(names[i]);

        if (v) {
            h = digest_bytes(h, v, strlen(v));
            seen++;
        }
    }
    /* Siblings, perhaps each in a script of its own: what they surely share is the session. */
    return seen ? h : digest_bytes(h, &session, sizeof(session));
}

static int find_file(struct bench_launcher *l, struct error *e)
{
    const char *folder = value_of("NCCLSHIM_RENDEZVOUS");
    int n;

    l->one_host = !folder;
    if (folder)
        n = snprintf(l->file, sizeof(l->file), "%s/ncclshim-bench-%016llx", folder,
                     (unsigned long long)job_digest(l));
    else
        n = snprintf(l->file, sizeof(l->file), "/dev/shm/ncclshim-bench-%u-%016llx",
                     (unsigned)geteuid(), (unsigned long long)job_digest(l));
    if (n < 0 || (size_t)n >= sizeof(l->file) - 16)
        return error_set(e, NULL, 0, "NCCLSHIM_RENDEZVOUS: the name of the folder is too long");
    return 0;
}

static int find_meeting(struct bench_launcher *l, struct error *e)
{
    const char *host = value_of("MASTER_ADDR");

    if (!host || !value_of("MASTER_PORT") || value_of("NCCLSHIM_RENDEZVOUS"))
        return find_file(l, e);
    if (number_of("MASTER_PORT", 1, 65534, &l->port, e) < 0)
        return -1;
    /* torchrun's agent keeps its store on that port while we run. */
    if (value_of("TORCHELASTIC_RUN_ID"))
        l->port++;
    if (snprintf(l->host, sizeof(l->host), "%s", host) >= (int)sizeof(l->host))
        return error_set(e, NULL, 0, "MASTER_ADDR is too long");
    return 0;
}

int bench_launcher_find(struct bench_launcher *l, struct error *e)
{
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        const struct family *f = &families[i];

        if (!value_of(f->rank) || !value_of(f->ranks) || (f->also && !value_of(f->also)))
            continue;
        memset(l, 0, sizeof(*l));
        snprintf(l->name, sizeof(l->name), "%s", f->name);
        l->local_rank = -1;
        if (number_of(f->ranks, 1, 1 << 20, &l->ranks, e) < 0 ||
            number_of(f->rank, 0, l->ranks - 1, &l->rank, e) < 0)
            return -1;
        if (value_of(f->local_rank) && number_of(f->local_rank, 0, 1 << 20, &l->local_rank, e) < 0)
            return -1;
        return find_meeting(l, e) < 0 ? -1 : 1;
    }
    return 0;
}
