/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "shim/base/grow.h"
#include "shim/base/paths.h"
#include "shim/prove/doctor/doctor_nccl.h"
#include "shim/prove/doctor/doctor_process.h"
#include "shim/prove/run/elf_facts.h"

#define MAPS_MAX (16u << 20) /* a server with 100,000 mappings has 8 MiB */
#define ENVIRONMENT_MAX (1u << 20)
#define PIDS_MAX 65536u

/* ---- one process ---------------------------------------------------------------------------- */

static void keep_copy(struct doctor_process *p, const char *path)
{
    for (unsigned i = 0; i < p->copy_count; i++)
        if (!strcmp(p->copies[i], path))
            return;
    if (p->copy_count < DOCTOR_COPIES && (p->copies[p->copy_count] = strdup(path)))
        p->copy_count++;
}

static bool static_nccl(const struct doctor_process *p, const char *root, const char *path)
{
    char full[DOCTOR_PATH], version[VERSION_TEXT_MAX];

    /* A wheel's libtorch_cuda is linked with libnccl.so.2, which is mapped as well. */
    return p->copy_count == 0 &&
           doctor_nccl_version(doctor_path(full, root, "/proc/%d/root%s", p->pid, path), version);
}

static void note_mapping(struct doctor_process *p, char *path)
{
    const char *base = doctor_base_name(path);
    size_t n = strlen(path);

    if (n > 10 && !strcmp(path + n - 10, " (deleted)"))
        path[n - 10] = '\0';
    if (!strcmp(base, "libncclshim.so"))
        p->shim = true;
    else if (doctor_is_nccl_name(base))
        keep_copy(p, path);
    else if (!strncmp(base, "libcuda.so", 10))
        p->cuda = true;
    else if (strstr(base, "torch_memory_saver"))
        p->saver = true;
    else if (!strncmp(base, "ld-musl-", 8))
        p->musl = true;
    else if (!p->log && is_log_file_name(base))
        p->log = strdup(path);
}

static char *torch_path(char *maps)
{
    char *at = strstr(maps, "/libtorch_cuda.so\n");

    if (!at)
        return NULL;
    at[strlen("/libtorch_cuda.so")] = '\0';
    while (at > maps && at[-1] != '\n' && at[-1] != ' ')
        at--;
    return at;
}

static void read_maps(struct doctor_process *p, const char *root)
{
    char path[DOCTOR_PATH], *maps, *line, *save, *torch;

    maps = doctor_slurp(doctor_path(path, root, "/proc/%d/maps", p->pid), MAPS_MAX, NULL);
    if (!maps)
        return;
    p->readable = true;
    torch = strdup(maps);
    for (line = strtok_r(maps, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *file = strchr(line, '/');
        if (file)
            note_mapping(p, file);
    }
    if (torch && (line = torch_path(torch)) && static_nccl(p, root, line)) {
        p->torch_nccl = true;
        keep_copy(p, line);
    }
    free(torch);
    free(maps);
}

/* "Uid:\t1000\t..." and the like. */
static unsigned long status_number(const char *status, const char *key)
{
    const char *at = strstr(status, key);

    return at ? strtoul(at + strlen(key), NULL, 10) : 0;
}

static void read_secure(struct doctor_process *p, const char *root)
{
    char path[DOCTOR_PATH];
    size_t n = 0;
    char *auxv = doctor_slurp(doctor_path(path, root, "/proc/%d/auxv", p->pid), 4096, &n);
    Elf64_auxv_t a;

    for (size_t at = 0; auxv && at + sizeof(a) <= n; at += sizeof(a)) {
        memcpy(&a, auxv + at, sizeof(a));
        if (a.a_type == AT_NULL)
            break;
        if (a.a_type == AT_SECURE)
            p->secure = a.a_un.a_val != 0;
    }
    free(auxv);
}

static void read_program(struct doctor_process *p, const char *root)
{
    char path[DOCTOR_PATH], caps[64];
    struct elf_facts f;
    struct stat st;

    doctor_path(path, root, "/proc/%d/exe", p->pid);
    if (stat(path, &st) == 0)
        p->setid = (st.st_mode & (S_ISUID | S_ISGID)) != 0;
    p->capable = getxattr(path, "security.capability", caps, sizeof(caps)) > 0;
    if (elf_read(path, &f) < 0 || !f.elf)
        return;
    p->foreign = !f.ours;
    p->static_exe = f.ours && !f.dynamic;
}

static const char *last_part(const char *path)
{
    const char *slash = path[0] == '/' || path[0] == '.' ? strrchr(path, '/') : NULL;

    return slash ? slash + 1 : path;
}

/*
 * What its user calls it: "python3 -m sglang.launch_server", "python3 serve.py", or what the server
 * put there instead, such as "VLLM::Worker_TP0". The kernel's own name is cut at 15 letters, is
 * that of a thread, and is "exe" for a program that started itself anew; it is all a zombie has.
 */
static void read_name(struct doctor_process *p, const char *root)
{
    char path[DOCTOR_PATH];
    size_t bytes = 0;
    char *args = doctor_slurp(doctor_path(path, root, "/proc/%d/cmdline", p->pid), 4096, &bytes);
    const char *first = args ? args : "", *second = first + strlen(first) + 1, *third;

    doctor_line_of(doctor_path(path, root, "/proc/%d/comm", p->pid), p->name, sizeof(p->name));
    if (!first[0]) {
        free(args);
        return;
    }
    snprintf(p->name, sizeof(p->name), "%s", last_part(first));
    if (!strncmp(last_part(first), "python", 6) && second < args + bytes) {
        third = second + strlen(second) + 1;
        if (!strcmp(second, "-m") && third < args + bytes)
            snprintf(p->name, sizeof(p->name), "%s -m %s", last_part(first), third);
        else if (second[0] != '-')
            snprintf(p->name, sizeof(p->name), "%s %s", last_part(first), last_part(second));
    }
    free(args);
}

int doctor_process_read(struct doctor_process *p, const char *root, int pid)
{
    char path[DOCTOR_PATH], *status;

    memset(p, 0, sizeof(*p));
    p->pid = pid;
    status = doctor_slurp(doctor_path(path, root, "/proc/%d/status", pid), 16384, NULL);
    if (!status)
        return -1;
    p->parent = (int)status_number(status, "\nPPid:");
    p->uid = (uid_t)status_number(status, "\nUid:");
    free(status);
    read_name(p, root);
    read_maps(p, root);
    p->env = doctor_slurp(doctor_path(path, root, "/proc/%d/environ", pid), ENVIRONMENT_MAX,
                          &p->env_bytes);
    read_secure(p, root);
    read_program(p, root);
    return 0;
}

void doctor_process_free(struct doctor_process *p)
{
    for (unsigned i = 0; i < p->copy_count; i++)
        free(p->copies[i]);
    free(p->log);
    free(p->env);
    memset(p, 0, sizeof(*p));
}

/* ---- many ----------------------------------------------------------------------------------- */

struct kin {
    int pid, parent;
    bool in;
};

/* All numbers in /proc with their parents; malloc'ed. */
static struct kin *list_processes(const char *root, size_t *count)
{
    char path[DOCTOR_PATH], stat[512], *close;
    struct kin *k = NULL, *more;
    DIR *d = opendir(doctor_path(path, root, "/proc"));
    struct dirent *e;
    int pid, parent;

    *count = 0;
    while (d && (e = readdir(d)) && *count < PIDS_MAX) {
        pid = atoi(e->d_name);
        if (pid <= 0 ||
            !doctor_line_of(doctor_path(path, root, "/proc/%d/stat", pid), stat, sizeof(stat)))
            continue;
        close = strrchr(stat, ')'); /* a program's name may hold anything */
        if (!close || sscanf(close + 1, " %*c %d", &parent) != 1)
            continue;
        more = GROW(k, *count);
        if (!more)
            break;
        *more = (struct kin){pid, parent, false};
    }
    if (d)
        closedir(d);
    return k;
}

static int by_pid(const void *a, const void *b)
{
    const struct kin *x = a, *y = b;

    return (x->pid > y->pid) - (x->pid < y->pid);
}

/* Mark all that descend from `pid`, in a list sorted by number: one more generation a round. */
static void mark_family(struct kin *k, size_t count, int pid)
{
    bool more = true;

    for (size_t i = 0; i < count; i++)
        k[i].in = k[i].pid == pid;
    while (more) {
        more = false;
        for (size_t i = 0; i < count; i++) {
            struct kin want = {.pid = k[i].parent};
            const struct kin *parent =
                k[i].in ? NULL : bsearch(&want, k, count, sizeof(*k), by_pid);
            if (parent && parent->in)
                k[i].in = more = true;
        }
    }
}

static int keep(struct doctor_processes *all, struct doctor_process *p)
{
    struct doctor_process *more = GROW(all->list, all->count);

    if (!more)
        return -1;
    *more = *p;
    return 0;
}

int doctor_processes_read(struct doctor_processes *all, const char *root, int pid, uid_t uid,
                          struct error *e)
{
    size_t count;
    struct kin *k = list_processes(root, &count);
    struct doctor_process p;

    memset(all, 0, sizeof(*all));
    if (count)
        qsort(k, count, sizeof(*k), by_pid);
    if (pid)
        mark_family(k, count, pid);
    for (size_t i = 0; i < count; i++) {
        if ((pid && !k[i].in) || (!*root && k[i].pid == getpid()))
            continue;
        if (doctor_process_read(&p, root, k[i].pid) < 0 || (!pid && uid && p.uid != uid) ||
            keep(all, &p) < 0)
            doctor_process_free(&p);
    }
    free(k);
    if (pid && all->count == 0)
        return error_set(e, "", 0,
                         "there is no process %d here; in a container it has another number", pid);
    return 0;
}

void doctor_processes_free(struct doctor_processes *all)
{
    for (size_t i = 0; i < all->count; i++)
        doctor_process_free(&all->list[i]);
    free(all->list);
    memset(all, 0, sizeof(*all));
}
