/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/show/overview.h"

#include <stdio.h>
#include <string.h>

#include "shim/base/names.h"
#include "shim/show/term.h"

/* ---- libraries, GPUs, hosts ------------------------------------------------------------------ */

static void add_copy(struct overview *f, const char *path, uint64_t version)
{
    struct nccl_copy *c;

    for (uint32_t i = 0; i < f->copy_count; i++)
        if (!strcmp(f->copies[i].path, path) && f->copies[i].version == version) {
            f->copies[i].processes++;
            return;
        }
    if (f->copy_count == COPIES_MAX)
        return;
    c = &f->copies[f->copy_count++];
    snprintf(c->path, sizeof(c->path), "%s", path);
    c->version = version;
    c->processes = 1;
}

static void take_libraries(struct overview *f)
{
    for (uint32_t i = 0; i < f->run->process_count; i++) {
        const struct log_file *log = f->run->processes[i].log;
        const struct ncclshim_note *n = NULL;
        uint32_t copies = 0;
        char path[512];
        while ((n = log_note_next(log, n)))
            if (n->type == NCCLSHIM_NOTE_LIBRARY) {
                log_note_text(n, 0, path, sizeof(path));
                add_copy(f, path, n->value);
                copies++;
            }
        if (copies > f->most_copies)
            f->most_copies = copies;
    }
}

/* Is an earlier ring of the run on the same GPU? */
static bool seen_before(const struct run *r, uint32_t process, uint32_t gpu)
{
    static const uint8_t unknown[16];
    const struct run_gpu *g = &r->processes[process].gpus[gpu];

    for (uint32_t i = 0; i <= process; i++)
        for (uint32_t k = 0; k < r->processes[i].gpu_count && (i < process || k < gpu); k++)
            if (memcmp(g->gpu.uuid, unknown, 16) &&
                !memcmp(r->processes[i].gpus[k].gpu.uuid, g->gpu.uuid, 16))
                return true;
    return false;
}

static void take_gpu(struct overview *f, const struct run_gpu *g)
{
    f->gpu_count++;
    for (uint32_t i = 0; i < f->gpu_kinds; i++)
        if (!strcmp(f->gpus[i].name, g->name)) {
            f->gpus[i].count++;
            return;
        }
    if (f->gpu_kinds == GPU_KINDS_MAX)
        return;
    snprintf(f->gpus[f->gpu_kinds].name, sizeof(f->gpus[0].name), "%s", g->name);
    f->gpus[f->gpu_kinds].sm = g->gpu.sm;
    f->gpus[f->gpu_kinds++].count = 1;
}

static void take_machines(struct overview *f)
{
    const struct run *r = f->run;

    for (uint32_t i = 0; i < r->process_count; i++) {
        const struct run_process *p = &r->processes[i];
        bool new_host = true;
        for (uint32_t k = 0; k < i; k++)
            new_host &= strncmp(r->processes[k].log->head.boot_id, p->log->head.boot_id,
                                sizeof(p->log->head.boot_id)) != 0;
        f->host_count += new_host;
        f->rank_count += p->log->ring_count;
        for (uint32_t k = 0; k < p->gpu_count; k++)
            if (p->gpus[k].gpu.stamp != UINT32_MAX && !seen_before(r, i, k))
                take_gpu(f, &p->gpus[k]);
    }
}

int overview_make(struct run *r, struct overview *f, struct error *e)
{
    memset(f, 0, sizeof(*f));
    f->run = r;
    if (run_settings_gather(r, &f->settings) < 0)
        return error_set(e, r->path, 0, "out of memory");
    if (wait_measure(r, &f->arrivals, e) < 0) {
        overview_free(f);
        return -1;
    }
    take_libraries(f);
    take_machines(f);
    hints_make(f);
    return 0;
}

void overview_free(struct overview *f)
{
    run_settings_free(&f->settings, f->run);
    wait_free(f->arrivals, f->run);
    f->arrivals = NULL;
}

/* ---- names ----------------------------------------------------------------------------------- */

const char *process_label(const struct run *r, uint32_t process, char *buf, size_t size)
{
    const struct ncclshim_log_header *h = &r->processes[process].log->head;
    char host[65], safe[260];
    int32_t rank = -1, ranks = 0;
    unsigned count = 0;

    /* The largest communicator names the ranks, when the process is one of them only, and no other
     * communicator, of a second server say, has such ranks as well. */
    for (uint32_t i = 0; i < r->comm_count; i++) {
        const struct run_comm *c = &r->comms[i];
        if (c->ranks <= ranks)
            continue;
        count = 0;
        ranks = c->ranks;
        for (uint32_t k = 0; k < c->member_count; k++)
            if (c->members[k].process == process) {
                rank = c->members[k].rank;
                count++;
            }
    }
    if (count == 1 && r->process_count <= (uint32_t)ranks) {
        snprintf(buf, size, "rank %d", rank);
        return buf;
    }
    snprintf(host, sizeof(host), "%.*s", (int)sizeof(h->host), h->host);
    snprintf(buf, size, "%s:%u", safe_text(host, safe, sizeof(safe)), h->pid);
    return buf;
}

const char *comm_label(const struct run *r, uint32_t comm, char *buf, size_t size)
{
    char safe[260];

    snprintf(buf, size, "comm %s", safe_text(r->comms[comm].name, safe, sizeof(safe)));
    return buf;
}

const char *pass_label(const struct run_pass *p, char *buf, size_t size)
{
    char bytes[UNIT_SIZE];
    int n;

    if (!p->like) {
        snprintf(buf, size, "%u calls", p->calls);
        return buf;
    }
    n = snprintf(buf, size, "%u x %s %s", p->like, op_name(p->op), unit_bytes(p->bytes, bytes));
    if (p->like < p->calls && n > 0 && (size_t)n < size)
        snprintf(buf + n, size - (size_t)n, " + %u more", p->calls - p->like);
    return buf;
}

const char *choice_label(const struct run_row *row, char *buf, size_t size)
{
    char channels[16] = "-";

    if (row->algo == NCCLSHIM_NO_CHOICE && row->proto == NCCLSHIM_NO_CHOICE && !row->channels) {
        snprintf(buf, size, "-");
        return buf;
    }
    if (row->channels)
        snprintf(channels, sizeof(channels), "%s%u", row->mixed_channels ? "<=" : "",
                 row->channels);
    snprintf(buf, size, "%s %s %s", row->algo == NCCLSHIM_NO_CHOICE ? "-" : algo_name(row->algo),
             row->proto == NCCLSHIM_NO_CHOICE ? "-" : proto_name(row->proto), channels);
    return buf;
}

const char *nccl_version_text(uint64_t code, char *buf)
{
    unsigned long long c = code, major, minor, patch;

    /* 2.8 and before counted 1000 a major version, later ones 10000 (nccl.h, NCCL_VERSION). */
    if (c < 10000) {
        major = c / 1000;
        minor = c % 1000 / 100;
        patch = c % 100;
    } else {
        major = c / 10000;
        minor = c % 10000 / 100;
        patch = c % 100;
    }
    if (code)
        snprintf(buf, UNIT_SIZE, "%llu.%llu.%llu", major, minor, patch);
    else
        snprintf(buf, UNIT_SIZE, "version unknown");
    return buf;
}

const char *run_state(const struct run *r)
{
    for (uint32_t i = 0; i < r->process_count; i++)
        if (r->processes[i].lives)
            return "still running";
    if (r->closed)
        return "closed";
    return "not closed (killed?)";
}

const char *stamp_text(uint32_t stamp)
{
    switch (stamp) {
    case NCCLSHIM_STAMP_NONE:
        return "no stamps: calls are counted, not timed";
    case NCCLSHIM_STAMP_PLAIN:
        return "stamp kernels, plain launch";
    case NCCLSHIM_STAMP_DEPENDENT:
        return "stamp kernels, dependent launch";
    default:
        return "stamp kernels, launched differently on different GPUs";
    }
}
