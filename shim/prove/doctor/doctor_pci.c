/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access Control Services send what one GPU writes to another up to the root complex, even where a
 * switch could turn it round; a translating IOMMU makes the same way slower, or the data wrong.
 * Layouts: PCI Express base specification, extended capability 0x000d.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/prove/doctor/doctor_machine.h"
#include "shim/show/json.h"

#define CONFIG_BYTES 4096
#define EXTENDED 0x100
#define CAP_ACS 0x000d
#define ACS_CONTROL 6
#define ACS_REDIRECT (0x04 | 0x08) /* P2P request and completion redirect */
#define BRIDGES_MAX 256

struct bridges {
    char seen[BRIDGES_MAX][16]; /* 0000:00:01.0 */
    unsigned count, readable, redirecting;
    char first[16];
};

static unsigned half(const unsigned char *c)
{
    return c[0] | (unsigned)c[1] << 8;
}

/* 1 redirects, 0 does not, -1 its extended space can't be read (only root may). */
static int acs_redirects(const char *path)
{
    size_t n = 0;
    unsigned char *c = (unsigned char *)doctor_slurp(path, CONFIG_BYTES, &n);
    int found = n > EXTENDED ? 0 : -1;

    /* Each step goes to another offset of at most 1024, so a circle ends, too. */
    for (unsigned at = EXTENDED, steps = 0; c && at >= EXTENDED && at + 8 <= n && steps < 1024;
         steps++) {
        if (half(c + at) == CAP_ACS) {
            found = (half(c + at + ACS_CONTROL) & ACS_REDIRECT) != 0;
            break;
        }
        at = half(c + at + 2) >> 4;
    }
    free(c);
    return found;
}

static bool is_address(const char *word, size_t n)
{
    return n == 12 && word[4] == ':' && word[7] == ':' && word[10] == '.';
}

static void look_at_bridge(const char *root, const char *address, struct bridges *b)
{
    char path[DOCTOR_PATH];
    int r;

    for (unsigned i = 0; i < b->count; i++)
        if (!strcmp(b->seen[i], address))
            return;
    if (b->count == BRIDGES_MAX)
        return;
    snprintf(b->seen[b->count++], sizeof(b->seen[0]), "%s", address);
    r = acs_redirects(doctor_path(path, root, "/sys/bus/pci/devices/%s/config", address));
    b->readable += r >= 0;
    b->redirecting += r == 1;
    if (r == 1 && !b->first[0])
        snprintf(b->first, sizeof(b->first), "%s", address);
}

/* The bridges above a device are the parts of its path in /sys/devices. */
static void look_above(const char *root, const char *gpu, struct bridges *b)
{
    char path[DOCTOR_PATH], real[PATH_MAX], address[16];

    if (!realpath(doctor_path(path, root, "/sys/bus/pci/devices/%s", gpu), real))
        return;
    for (char *word = real; *word;) {
        size_t n = strcspn(word, "/");
        if (is_address(word, n) && strncmp(word, gpu, n) != 0) {
            snprintf(address, sizeof(address), "%.*s", (int)n, word);
            look_at_bridge(root, address, b);
        }
        word += n + (word[n] != '\0');
    }
}

static bool is_gpu(const char *root, const char *address)
{
    char path[DOCTOR_PATH], vendor[16], class[16];

    doctor_line_of(doctor_path(path, root, "/sys/bus/pci/devices/%s/vendor", address), vendor,
                   sizeof(vendor));
    doctor_line_of(doctor_path(path, root, "/sys/bus/pci/devices/%s/class", address), class,
                   sizeof(class));
    return !strcmp(vendor, "0x10de") && !strncmp(class, "0x03", 4);
}

/* "DMA", "DMA-FQ", "identity", ...; "" = no group, or not told. */
static void iommu_mode(const char *root, const char *address, char buf[32])
{
    char path[DOCTOR_PATH];

    doctor_line_of(doctor_path(path, root, "/sys/bus/pci/devices/%s/iommu_group/type", address),
                   buf, 32);
}

static void judge_acs(struct doctor_list *l, const struct bridges *b)
{
    struct doctor_finding *f;

    if (b->count == 0)
        return; /* no bridge above them is shown: a virtual machine */
    if (b->redirecting) {
        f = doctor_add(l, DOCTOR_WARN, "acs",
                       "ACS is on for %u of %u bridges above the GPUs (%s%s): peer traffic goes "
                       "through the root complex",
                       b->redirecting, b->count, b->first, b->redirecting > 1 ? ", ..." : "");
        doctor_advise(
            f,
            "on bare metal turn it off in the BIOS, or with setpci on each bridge at each boot; a "
            "virtual machine needs it");
    } else if (b->readable == b->count) {
        f = doctor_add(l, DOCTOR_OK, "acs",
                       "no bridge above the GPUs redirects peer traffic (ACS, %u looked at)",
                       b->count);
    } else {
        f = doctor_add(l, DOCTOR_UNKNOWN, "acs",
                       "ACS can't be read: %u of %u bridges show it, and only to root", b->readable,
                       b->count);
        doctor_advise(f, "sudo ncclshim doctor");
    }
    doctor_fact(f, "bridges", json_integer(b->count));
    doctor_fact(f, "readable", json_integer(b->readable));
    doctor_fact(f, "redirecting", json_integer(b->redirecting));
}

/* The word of /proc/cmdline that speaks of the IOMMU. */
static void boot_word(const char *root, char buf[64])
{
    char path[DOCTOR_PATH], line[4096], *save, *word;

    buf[0] = '\0';
    if (!doctor_line_of(doctor_path(path, root, "/proc/cmdline"), line, sizeof(line)))
        return;
    for (word = strtok_r(line, " ", &save); word; word = strtok_r(NULL, " ", &save))
        if (strstr(word, "iommu") && strlen(buf) + strlen(word) + 2 < 64) {
            strcat(buf, buf[0] ? " " : "");
            strcat(buf, word);
        }
}

static void judge_iommu(struct doctor_list *l, const char *root, const char *mode)
{
    struct doctor_finding *f;
    char boot[64];

    boot_word(root, boot);
    if (!doctor_has_entries(root, "/sys/kernel/iommu_groups")) {
        f = doctor_add(l, DOCTOR_OK, "iommu", "no IOMMU is in use");
    } else if (!strcmp(mode, "identity")) {
        f = doctor_add(l, DOCTOR_OK, "iommu",
                       "the IOMMU passes the GPUs' traffic through (identity)");
    } else if (mode[0]) {
        f = doctor_add(l, DOCTOR_WARN, "iommu",
                       "the IOMMU translates the GPUs' traffic (%s): peer access may hang, be "
                       "slow, or be wrong",
                       mode);
        doctor_advise(f, "boot with iommu=pt (or iommu=off), and see that `ncclshim bench` finds "
                         "all results right");
    } else {
        f = doctor_add(l, DOCTOR_UNKNOWN, "iommu",
                       "an IOMMU is in use; whether it translates the GPUs' traffic can't be seen");
    }
    doctor_fact(f, "mode", mode[0] ? json_text(mode) : json_null());
    doctor_fact(f, "kernel_command_line", boot[0] ? json_text(boot) : json_null());
}

void doctor_pci_judge(struct doctor_list *l, const char *root)
{
    struct bridges b = {0};
    char path[DOCTOR_PATH], mode[32] = "", one[32];
    DIR *d = opendir(doctor_path(path, root, "/sys/bus/pci/devices"));
    struct dirent *e;
    unsigned gpus = 0;

    while (d && (e = readdir(d))) {
        if (!is_address(e->d_name, strlen(e->d_name)) || !is_gpu(root, e->d_name))
            continue;
        gpus++;
        look_above(root, e->d_name, &b);
        iommu_mode(root, e->d_name, one);
        if (one[0] && strcmp(mode, "DMA") && strcmp(mode, "DMA-FQ"))
            snprintf(mode, sizeof(mode), "%s", one);
    }
    if (d)
        closedir(d);
    if (!gpus)
        return; /* nothing whose traffic would matter */
    judge_acs(l, &b);
    judge_iommu(l, root, mode);
}
