/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that a launcher started find each other: rank 0 listens, the others come and say who they
 * are. Whoever does not say it right (a port scanner, a rank of another job, of an earlier phase)
 * is shown the door and counts as nobody.
 */
#include "shim/prove/bench/bench_meet.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/replace.h"

#define HELLO_MAGIC 0x6e63626d65657431ull
#define HELLO_MS 5000 /* a client that says nothing for so long is nobody */
#define RETRY_MS 50

struct hello {
    uint64_t magic, job;
    uint32_t phase, rank, ranks, reserved;
};

enum answer { ANSWER_WELCOME = 0x57454c43, ANSWER_OTHER_JOB, ANSWER_OTHER_PHASE };

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void nap(void)
{
    struct timespec t = {0, RETRY_MS * 1000000l};

    nanosleep(&t, NULL);
}

/* ---- transfers ------------------------------------------------------------------------------- */

static int move_all(int fd, void *data, size_t size, bool out, struct error *e)
{
    char *at = data;

    while (size) {
        ssize_t n = out ? send(fd, at, size, MSG_NOSIGNAL) : recv(fd, at, size, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) /* the rank that failed has said why */
            return n < 0 && errno != ECONNRESET && errno != EPIPE && errno != EBADF
                       ? error_set(e, NULL, 0, "the connection between the ranks broke: %s",
                                   strerror(errno))
                       : error_set(e, NULL, 0, "%s", "");
        at += n;
        size -= (size_t)n;
    }
    return 0;
}

int bench_tcp_send(int fd, const void *data, size_t size, struct error *e)
{
    return move_all(fd, (void *)(uintptr_t)data, size, true, e);
}

int bench_tcp_receive(int fd, void *data, size_t size, struct error *e)
{
    return move_all(fd, data, size, false, e);
}

static void set_up_socket(int fd)
{
    int one = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
}

/* ---- rank 0 ---------------------------------------------------------------------------------- */

static int listen_on(const char *host, int port, struct error *e)
{
    struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM}, *list = NULL;
    char service[16];
    int fd = -1, one = 1;

    snprintf(service, sizeof(service), "%d", port);
    if (getaddrinfo(host, service, &hints, &list) != 0)
        return error_set(e, NULL, 0, "the address '%s' of rank 0 is not known here",
                         host ? host : "any");
    for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
        if (fd < 0)
            continue;
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        if (bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, 128) < 0) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(list);
    return fd >= 0 ? fd
                   : error_set(e, NULL, 0, "rank 0 can't listen on %s port %d: %s",
                               host ? host : "*", port, strerror(errno));
}

static int file_name(const struct bench_settings *set, char *buf, size_t size)
{
    return snprintf(buf, size, "%s.%u", set->launcher.file, set->phase) < (int)size ? 0 : -1;
}

/* Tell where we listen. */
static int publish(const struct bench_settings *set, int fd, struct error *e)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof(address);
    char path[660], text[300], name[256];
    struct replacement file;
    int port, n;

    if (file_name(set, path, sizeof(path)) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) < 0)
        return error_set(e, NULL, 0, "rank 0 does not know where it listens: %s", strerror(errno));
    port = ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
                                               : ((struct sockaddr_in *)&address)->sin_port);
    if (set->launcher.one_host)
        snprintf(name, sizeof(name), "127.0.0.1");
    else if (gethostname(name, sizeof(name)) < 0)
        return error_set(e, NULL, 0, "this host has no name: %s", strerror(errno));
    n = snprintf(text, sizeof(text), "%s %d\n", name, port);
    if (replace_begin_path(&file, path, 0600) == 0 &&
        replace_end(&file, write_all(file.fd, text, (size_t)n) == 0) == 0)
        return 0;
    return error_set(e, path, 0, "can't write where rank 0 is: %s", strerror(errno));
}

/* One who came. 0: seen to; -1 with *e filled: a rank with other work, which can't end well. */
static int receive_one(struct bench_meet *m, const struct bench_settings *set, uint64_t job, int fd,
                       int *left, struct error *e)
{
    struct timeval patience = {HELLO_MS / 1000, 0}, forever = {0, 0};
    struct hello h;
    uint32_t answer = ANSWER_WELCOME;

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (recv(fd, &h, sizeof(h), MSG_WAITALL) != (ssize_t)sizeof(h) || h.magic != HELLO_MAGIC ||
        h.rank == 0 || h.rank >= (uint32_t)m->ranks || m->fds[h.rank] >= 0) {
        close(fd);
        return 0;
    }
    if (h.phase != set->phase)
        answer = ANSWER_OTHER_PHASE;
    else if (h.job != job || h.ranks != (uint32_t)m->ranks)
        answer = ANSWER_OTHER_JOB;
    if (bench_tcp_send(fd, &answer, sizeof(answer), e) < 0 || answer != ANSWER_WELCOME) {
        close(fd);
        if (answer == ANSWER_OTHER_JOB)
            return error_set(e, NULL, 0, "rank %u was started with other options, or sees another "
                                         "workload, than rank 0", h.rank);
        return 0;
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &forever, sizeof(forever));
    set_up_socket(fd);
    m->fds[h.rank] = fd;
    --*left;
    return 0;
}

static int receive_all(struct bench_meet *m, const struct bench_settings *set, uint64_t job,
                       int listener, struct error *e)
{
    int64_t end = now_ms() + (int64_t)set->timeout_s * 1000;
    int left = m->ranks - 1;

    while (left > 0) {
        struct pollfd p = {.fd = listener, .events = POLLIN};
        int64_t wait = end - now_ms();
        int fd;

        if (wait <= 0)
            return error_set(e, NULL, 0, "%d of %d ranks did not come within %u s", left, m->ranks,
                             set->timeout_s);
        if (poll(&p, 1, (int)(wait > 1000 ? 1000 : wait)) <= 0)
            continue;
        fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0 && receive_one(m, set, job, fd, &left, e) < 0)
            return -1;
    }
    return 0;
}

static int be_host(struct bench_meet *m, const struct bench_settings *set, uint64_t job,
                   struct error *e)
{
    const struct bench_launcher *l = &set->launcher;
    char path[660];
    int fd, rc = 0;

    if (l->host[0]) {
        fd = listen_on(l->host, l->port, e);
        if (fd < 0) /* MASTER_ADDR may be an address that is translated on the way */
            fd = listen_on(NULL, l->port, e);
    } else {
        fd = listen_on(l->one_host ? "127.0.0.1" : NULL, 0, e);
        rc = fd >= 0 ? publish(set, fd, e) : 0;
    }
    if (fd < 0)
        return -1;
    if (rc == 0)
        rc = receive_all(m, set, job, fd, e);
    close(fd);
    if (!l->host[0] && file_name(set, path, sizeof(path)) == 0)
        unlink(path);
    return rc;
}

/* ---- the others ------------------------------------------------------------------------------ */

static int read_address(const struct bench_settings *set, char host[256], int *port)
{
    char path[660];
    FILE *in;
    int n;

    if (set->launcher.host[0]) {
        snprintf(host, 256, "%s", set->launcher.host);
        *port = set->launcher.port;
        return 0;
    }
    if (file_name(set, path, sizeof(path)) < 0 || !(in = fopen(path, "re")))
        return -1;
    n = fscanf(in, "%255s %d", host, port);
    fclose(in);
    return n == 2 ? 0 : -1;
}

static int connect_to(const char *host, int port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    char service[16];
    int fd = -1;

    snprintf(service, sizeof(service), "%d", port);
    if (getaddrinfo(host, service, &hints, &list) != 0)
        return -1;
    for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
        if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) < 0) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(list);
    return fd;
}

/* 1: in. 0: nobody there yet. -1 with *e filled: not wanted. */
static int knock(struct bench_meet *m, const struct bench_settings *set, uint64_t job,
                 struct error *e)
{
    struct hello h = {HELLO_MAGIC, job, set->phase, (uint32_t)m->rank, (uint32_t)m->ranks, 0};
    uint32_t answer = 0;
    char host[256];
    int port, fd;

    if (read_address(set, host, &port) < 0 || (fd = connect_to(host, port)) < 0)
        return 0;
    if (bench_tcp_send(fd, &h, sizeof(h), e) < 0 ||
        bench_tcp_receive(fd, &answer, sizeof(answer), e) < 0 || answer != ANSWER_WELCOME) {
        close(fd);
        return answer == ANSWER_OTHER_JOB
                   ? error_set(e, NULL, 0,
                               "rank 0 was started with other options, or sees another workload, "
                               "than rank %d",
                               m->rank)
                   : 0;
    }
    set_up_socket(fd);
    m->fds[0] = fd;
    return 1;
}

static int be_guest(struct bench_meet *m, const struct bench_settings *set, uint64_t job,
                    struct error *e)
{
    int64_t end = now_ms() + (int64_t)set->timeout_s * 1000;
    int rc;

    while ((rc = knock(m, set, job, e)) == 0) {
        if (now_ms() > end)
            return error_set(e, NULL, 0, "rank 0 was not found within %u s at %s", set->timeout_s,
                             set->launcher.host[0] ? set->launcher.host : set->launcher.file);
        nap();
    }
    return rc < 0 ? -1 : 0;
}

/* ---- one host: shared memory after all ------------------------------------------------------- */

struct invitation {
    char boot[40], file[64];
};

static void read_boot(char boot[40])
{
    FILE *in = fopen("/proc/sys/kernel/random/boot_id", "re");

    if (!in || !fgets(boot, 40, in))
        boot[0] = '\0';
    if (in)
        fclose(in);
}

static struct bench_shm *map_file(const char *path, bool create)
{
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | (create ? O_CREAT | O_EXCL : 0), 0600);
    struct bench_shm *s = MAP_FAILED;

    if (fd < 0)
        return NULL;
    if (!create || ftruncate(fd, sizeof(*s)) == 0)
        s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return s == MAP_FAILED ? NULL : s;
}

/* Barriers over TCP take tens of microseconds; where all ranks can map one file they need not. */
static int share_memory(struct bench_meet *m, struct error *e)
{
    struct invitation mine = {{0}, {0}}, all[WORKLOAD_RANKS];
    struct bench_shm *s = NULL;
    unsigned char have[WORKLOAD_RANKS], ok;
    unsigned number = 0;
    bool everyone = true;

    read_boot(mine.boot);
    if (m->rank == 0 && getrandom(&number, sizeof(number), 0) == (ssize_t)sizeof(number)) {
        snprintf(mine.file, sizeof(mine.file), "/dev/shm/ncclshim-bench-%u-%08x",
                 (unsigned)geteuid(), number);
        s = map_file(mine.file, true);
    }
    if (bench_meet_exchange(m, &mine, sizeof(mine), all, e) < 0)
        return -1;
    if (m->rank > 0 && all[0].boot[0] && !strcmp(all[0].boot, mine.boot) &&
        !memchr(all[0].file, 0, 1) && memchr(all[0].file, 0, sizeof(all[0].file)))
        s = map_file(all[0].file, false);
    ok = s != NULL;
    if (bench_meet_exchange(m, &ok, 1, have, e) < 0)
        return -1;
    if (m->rank == 0 && mine.file[0])
        unlink(mine.file);
    for (int r = 0; r < m->ranks; r++)
        everyone = everyone && have[r];
    if (everyone)
        m->shm = s;
    else if (s)
        munmap(s, sizeof(*s));
    return 0;
}

int bench_meet_connect(struct bench_meet *m, const struct bench_settings *set, uint64_t job,
                       struct error *e)
{
    int rc;

    memset(m->fds, 0xff, sizeof(m->fds));
    m->shm = NULL;
    if (m->ranks == 1)
        return 0;
    rc = m->rank == 0 ? be_host(m, set, job, e) : be_guest(m, set, job, e);
    if (rc == 0)
        rc = share_memory(m, e);
    if (rc < 0)
        bench_meet_fail(m); /* those who are in already must not wait for us */
    return rc;
}

void bench_meet_forget(const struct bench_settings *set)
{
    char path[660];

    if (set->launched && set->launcher.rank == 0 && !set->launcher.host[0] &&
        file_name(set, path, sizeof(path)) == 0)
        unlink(path);
}

void bench_meet_close(struct bench_meet *m)
{
    for (int r = 0; r < WORKLOAD_RANKS; r++)
        if (m->fds[r] >= 0)
            close(m->fds[r]);
}
