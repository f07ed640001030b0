/* SPDX-License-Identifier: Apache-2.0 */
/* Does the process that writes a log still live? */
#include "shim/log/read/reader.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Inode of the first pid namespace (PROC_PID_INIT_INO of linux/proc_ns.h): it sees all others. */
#define FIRST_PID_NS 0xEFFFFFFCull

static ssize_t read_small(const char *path, char *buf, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return -1;
    n = read(fd, buf, size - 1);
    close(fd);
    if (n >= 0)
        buf[n] = '\0';
    return n;
}

static bool same_boot(const struct log_file *f)
{
    char boot[64];

    if (read_small("/proc/sys/kernel/random/boot_id", boot, sizeof(boot)) < 0)
        return false;
    boot[strcspn(boot, "\n")] = '\0';
    return !strcmp(boot, f->head.boot_id);
}

static uint64_t pid_ns_of(const char *who)
{
    char path[288];
    struct stat st;

    snprintf(path, sizeof(path), "/proc/%s/ns/pid", who);
    return stat(path, &st) < 0 ? 0 : (uint64_t)st.st_ino;
}

/*
 * State, thread count and start time from /proc/PID/stat (fields 3, 20, 22). The name in field 2
 * may hold anything: the fields are counted from the last closing parenthesis.
 */
static bool runs_since(const char *pid, uint64_t start_ticks)
{
    char path[288], buf[1024], state, *p;
    unsigned long long ticks;
    long threads;

    snprintf(path, sizeof(path), "/proc/%s/stat", pid);
    if (read_small(path, buf, sizeof(buf)) < 0 || !(p = strrchr(buf, ')')))
        return false;
    if (sscanf(p + 1,
               " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %llu",
               &state, &threads, &ticks) != 3)
        return false;
    /* A leader that ended before its threads is a zombie too, but its process lives. */
    if ((state == 'Z' && threads <= 1) || state == 'X')
        return false;
    return ticks == start_ticks;
}

/* The last entry of NSpid: its pid in the innermost namespace. */
static long inner_pid(const char *pid)
{
    char path[288], buf[4096], *line, *end, *last;

    snprintf(path, sizeof(path), "/proc/%s/status", pid);
    if (read_small(path, buf, sizeof(buf)) < 0 || !(line = strstr(buf, "\nNSpid:")))
        return -1;
    line += 7;
    end = line + strcspn(line, "\n");
    *end = '\0';
    last = end;
    while (last > line && isdigit((unsigned char)last[-1]))
        last--;
    return last < end ? strtol(last, NULL, 10) : -1;
}

/* Look for it under another number, as a container's process has on the host. */
static int find_in_proc(const struct log_file *f)
{
    DIR *dir = opendir("/proc");
    struct dirent *d;
    uint64_t ns;
    int found = 0;

    while (dir && !found && (d = readdir(dir))) {
        if (!isdigit((unsigned char)d->d_name[0]) || !runs_since(d->d_name, f->head.start_ticks) ||
            inner_pid(d->d_name) != (long)f->head.pid)
            continue;
        ns = pid_ns_of(d->d_name);
        if (ns == f->head.pid_ns || ns == 0) /* 0: not ours to look at; pid and start agree */
            found = atoi(d->d_name);
    }
    if (dir)
        closedir(dir);
    return found;
}

enum log_writer_state log_writer_find(const struct log_file *f, int *pid)
{
    uint64_t here = pid_ns_of("self");
    char number[16];
    int found;

    if (pid)
        *pid = 0;
    if (!same_boot(f))
        return LOG_WRITER_GONE;
    snprintf(number, sizeof(number), "%u", f->head.pid);
    if (here == f->head.pid_ns)
        found = runs_since(number, f->head.start_ticks) ? (int)f->head.pid : 0;
    else
        found = find_in_proc(f);
    if (found) {
        if (pid)
            *pid = found;
        return LOG_WRITER_LIVES;
    }
    if (here == f->head.pid_ns || here == FIRST_PID_NS || f->head.state == NCCLSHIM_LOG_CLOSED)
        return LOG_WRITER_GONE;
    return LOG_WRITER_UNSEEN;
}

bool log_writer_lives(const struct log_file *f)
{
    return log_writer_find(f, NULL) == LOG_WRITER_LIVES;
}

bool log_is_followed(const struct log_file *f, const struct log_file *later)
{
    const struct ncclshim_log_header *a = &f->head, *b = &later->head;
    struct stat x, y;

    /* A program has one log. The owner counts: somebody else may claim to be that process. */
    return a->pid == b->pid && a->start_ticks == b->start_ticks && a->pid_ns == b->pid_ns &&
           a->created_ns < b->created_ns && !memcmp(a->boot_id, b->boot_id, sizeof(a->boot_id)) &&
           fstat(f->fd, &x) == 0 && fstat(later->fd, &y) == 0 && x.st_uid == y.st_uid;
}
