/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/doctor/doctor_look.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "shim/prove/doctor/doctor_gpus.h"
#include "shim/prove/doctor/doctor_machine.h"
#include "shim/prove/doctor/doctor_nccl.h"
#include "shim/prove/doctor/doctor_process.h"
#include "shim/prove/doctor/doctor_server.h"

static bool in_family(void *user, uint32_t pid)
{
    const struct doctor_processes *all = user;

    for (size_t i = 0; i < all->count; i++)
        if (all->list[i].pid == (int)pid)
            return true;
    return false;
}

static void look_at_gpus(const struct doctor_options *o, const struct doctor_env *env,
                         struct doctor_processes *family, struct doctor_list *l)
{
    char library[DOCTOR_PATH], vendor[64];
    struct doctor_gpus g;

    if (*o->root)
        doctor_path(library, o->root, "/usr/lib/libnvidia-ml.so.1");
    else
        snprintf(library, sizeof(library), "libnvidia-ml.so.1");
    doctor_gpus_read(&g, library);
    doctor_cpu_vendor(o->root, vendor);
    doctor_gpus_judge(l, &g);
    doctor_driver_judge(l, o->root, g.loaded);
    doctor_p2p_level_judge(l, &g, vendor, env);
    doctor_neighbours_judge(l, &g, o->pid ? in_family : NULL, family);
    doctor_gpus_free(&g);
}

/* A process in a container sees other files than we do; where its root can't be entered, ours
 * stands in. */
static void root_of(const struct doctor_options *o, char root[DOCTOR_PATH])
{
    if (o->pid && access(doctor_path(root, o->root, "/proc/%d/root/.", o->pid), X_OK) == 0)
        doctor_path(root, o->root, "/proc/%d/root", o->pid);
    else
        doctor_path(root, o->root, "%s", "");
}

static void look_at_machine(const struct doctor_options *o, const struct doctor_env *env,
                            struct doctor_list *l)
{
    struct doctor_libraries libraries;
    struct doctor_shm shm;
    char root[DOCTOR_PATH];

    doctor_pci_judge(l, o->root);
    doctor_shm_read(&shm, o->root, o->pid);
    doctor_shm_judge(l, &shm);
    doctor_memlock_judge(l, o->root, o->pid);
    doctor_container_judge(l, o->root, o->pid);
    root_of(o, root);
    doctor_nccl_find(&libraries, root, env);
    doctor_nccl_judge(l, &libraries);
    doctor_libraries_free(&libraries);
    doctor_conf_judge(l, root, env);
    doctor_plugins_judge(l, root, env);
}

/* Without --pid only those are told that have NCCL, or were meant to be under the shim and are not.
 */
static bool of_interest(const struct doctor_process *p)
{
    return p->copy_count || (p->shim && p->log) ||
           (p->readable && !p->shim && p->cuda && doctor_process_meant(p));
}

static void look_at_processes(const struct doctor_options *o, const struct doctor_processes *all,
                              struct doctor_list *l)
{
    struct doctor_timing *t = calloc(all->count + 1, sizeof(*t));
    struct doctor_view v = {o->root, o->pid != 0, false, o->moment_ms};
    unsigned told = 0;

    if (!t) {
        l->broken = true;
        return;
    }
    doctor_timing_read(t, all, o->root, o->moment_ms);
    for (size_t i = 0; i < all->count; i++)
        v.others_have_logs |= t[i].opened;
    for (size_t i = 0; i < all->count; i++)
        if (o->pid || of_interest(&all->list[i])) {
            doctor_process_judge(l, &all->list[i], &t[i], &v);
            told++;
        }
    if (!told)
        doctor_add(l, DOCTOR_OK, "process", "no process that has NCCL runs now");
    free(t);
}

int doctor_look(const struct doctor_options *o, struct doctor_list *l, struct error *e)
{
    struct doctor_processes all;
    struct doctor_env env = {0};

    if (doctor_processes_read(&all, o->root, o->pid, geteuid(), e) < 0)
        return -1;
    for (size_t i = 0; o->pid && i < all.count; i++)
        if (all.list[i].pid == o->pid && all.list[i].env)
            env = (struct doctor_env){all.list[i].env, all.list[i].env_bytes};
    look_at_gpus(o, &env, &all, l);
    look_at_machine(o, &env, l);
    look_at_processes(o, &all, l);
    doctor_processes_free(&all);
    return o->server_log ? doctor_server_judge(l, o->server_log, e) : 0;
}
