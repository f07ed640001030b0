/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/prove/doctor/doctor_server.h"

static struct doctor_list read_text(const char *text, size_t n)
{
    struct doctor_server *s = malloc(sizeof(*s));
    struct doctor_list l = {0};
    FILE *in = fmemopen((void *)text, n, "r");

    assert_non_null(s);
    assert_non_null(in);
    doctor_server_read(s, in);
    doctor_server_tell(&l, s, "server.log");
    fclose(in);
    free(s);
    return l;
}

static const struct doctor_finding *find(const struct doctor_list *l, const char *topic, const char *word)
{
    for (size_t i = 0; i < l->count; i++)
        if (!strcmp(l->list[i].topic, topic) && strstr(l->list[i].text, word))
            return &l->list[i];
    return NULL;
}

/* One log, and a finding that it must lead to. */
static void each_line_of_a_server_leads_to_its_switch(void **unused)
{
    static const struct {
        const char *text, *topic, *word, *advice;
        enum doctor_level level;
    } cases[] = {
        {"INFO [cuda_communicator.py:245] Using ['CUSTOM', 'PYNCCL'] all-reduce backends (in dispatch order) for "
         "group 'tp:0' out of potential backends: ['NCCL_SYMM_MEM', 'FLASHINFER', 'CUSTOM', 'PYNCCL'].\n",
         "server-bypass", "CUSTOM takes all-reduces of group tp:0", "--disable-custom-all-reduce", DOCTOR_WARN},
        {"Using ['FLASHINFER', 'PYNCCL'] all-reduce backends (in dispatch order) for group 'tp:0'\n", "server-bypass",
         "FLASHINFER ", "VLLM_ALLREDUCE_USE_FLASHINFER=0", DOCTOR_WARN},
        {"Using ['FLASHINFER_PCIE_IPC', 'PYNCCL'] all-reduce backends (in dispatch order) for group 'tp:0'\n",
         "server-bypass", "FLASHINFER_PCIE_IPC", "VLLM_ALLREDUCE_USE_FLASHINFER_PCIE_IPC=0", DOCTOR_WARN},
        {"Using ['SYMM_MEM', 'PYNCCL'] all-reduce backends (in dispatch order) for 'tp:0'\n", "server-bypass", "tp:0",
         "VLLM_ALLREDUCE_USE_SYMM_MEM=0", DOCTOR_WARN},
        {"Using ['NEW_THING', 'PYNCCL'] all-reduce backends\n", "server-bypass", "NEW_THING takes", NULL, DOCTOR_WARN},
        {"Using ['PYNCCL'] all-reduce backends (in dispatch order) for group 'ep:0'\n", "server-nccl", "PYNCCL", NULL, DOCTOR_OK},
        {"WARNING [custom_all_reduce.py:144] Custom allreduce is disabled because it's not supported on more than two "
         "PCIe-only GPUs. To silence this warning, specify disable_custom_all_reduce=True explicitly.\n",
         "server-custom-off", "not supported on more than two", NULL, DOCTOR_OK},
        {"INFO Enabled custom fusions: norm_quant, allreduce_rms\n", "server-fusion", "RMSNorm", "fuse_allreduce_rms", DOCTOR_WARN},
        {"FlashInfer AllReduce Fusion enabled and workspace initialized: backend=mnnvl\n", "server-fusion", "SGLang",
         "--enforce-disable-flashinfer-allreduce-fusion", DOCTOR_WARN},
        {"server_args=ServerArgs(tp_size=8, disable_custom_all_reduce=True, enable_mscclpp=True)\n", "server-bypass",
         "MSCCL++", "--enable-mscclpp", DOCTOR_WARN},
        {"server_args=ServerArgs(tp_size=8, disable_custom_all_reduce=True, enable_mscclpp=False)\n", "server-nccl",
         "custom all-reduce is off", NULL, DOCTOR_OK},
        {"server_args=ServerArgs(tp_size=2, disable_custom_all_reduce=False)\n", "server-bypass",
         "no line says that it gave up", "--disable-custom-all-reduce", DOCTOR_WARN},
        {"server_args={\"tp_size\":8,\"enable_flashinfer_allreduce_fusion\":true}\n", "server-fusion", "FlashInfer", "leave out", DOCTOR_WARN},
        {"ServerArgs(enable_memory_saver=True)\n", "server-preload", "torch_memory_saver", "ld.so.preload", DOCTOR_WARN},
        {"ServerArgs(moe_a2a_backend='deepep')\n", "server-all-to-all", "deepep", "none", DOCTOR_WARN},
        {"[TRT-LLM] args: allreduce_strategy='AUTO', x=1\n", "server-strategy", "AUTO: own kernels where GPUs have NVLink", "NCCL", DOCTOR_WARN},
        {"allreduce_strategy=<AllReduceStrategy.ONESHOT: 4>\n", "server-strategy", "ONESHOT", "NCCL", DOCTOR_WARN},
        {"allreduce_strategy: NCCL\n", "server-nccl", "strategy is NCCL", NULL, DOCTOR_OK},
        {"TurbomindEngineConfig(tp=2, communicator='cuda-ipc')\n", "server-bypass", "LMDeploy", "--communicator nccl", DOCTOR_WARN},
        {"hello\n", "server-log", "no line of server.log names", "INFO", DOCTOR_UNKNOWN},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct doctor_list l = read_text(cases[i].text, strlen(cases[i].text));
        const struct doctor_finding *f = find(&l, cases[i].topic, cases[i].word);
        if (!f)
            fail_msg("case %zu (%s): no %s with '%s'", i, cases[i].text, cases[i].topic, cases[i].word);
        assert_int_equal(f->level, cases[i].level);
        if (cases[i].advice)
            assert_non_null(strstr(f->advice, cases[i].advice));
        else
            assert_null(f->advice);
        doctor_list_free(&l);
    }
}

static void flags_that_are_off_and_source_code_say_nothing(void **unused)
{
    static const char text[] =
        "ServerArgs(tp_size=1, disable_custom_all_reduce=False, enable_mscclpp=False, enable_torch_symm_mem=False, "
        "enable_flashinfer_allreduce_fusion=False, enable_memory_saver=False, moe_a2a_backend='none')\n"
        "    allreduce_strategy=model_config.allreduce_strategy,\n"
        "TurbomindEngineConfig(communicator='nccl')\n"
        "xenable_mscclpp=True enable_mscclppx=True --enable-mscclpp\n";
    struct doctor_list l = read_text(text, sizeof(text) - 1);

    (void)unused;
    for (size_t i = 0; i < l.count; i++)
        assert_true(l.list[i].level != DOCTOR_WARN);
    doctor_list_free(&l);
}

static void the_same_line_of_eight_workers_is_one_finding(void **unused)
{
    static const char line[] = "Using ['CUSTOM', 'PYNCCL'] all-reduce backends (in dispatch order) for group 'tp:0'\n";
    char text[8 * sizeof(line)];
    struct doctor_list l;

    (void)unused;
    for (int i = 0; i < 8; i++)
        memcpy(text + (size_t)i * (sizeof(line) - 1), line, sizeof(line) - 1);
    l = read_text(text, 8 * (sizeof(line) - 1));
    assert_int_equal(l.count, 2);
    assert_int_equal(json_integer_value(json_object_get(l.list[0].facts, "lines")), 8);
    doctor_list_free(&l);
}

/* A line of a megabyte is read in pieces; a flag on a border must not be lost. */
static void a_flag_is_found_anywhere_in_a_very_long_line(void **unused)
{
    static const char flag[] = " enable_mscclpp=True,";
    size_t n = 3 * DOCTOR_SERVER_LINE;
    char *text = malloc(n);

    (void)unused;
    assert_non_null(text);
    for (size_t at = DOCTOR_SERVER_LINE - 40; at < DOCTOR_SERVER_LINE + 10; at++) {
        struct doctor_list l;
        memset(text, 'x', n);
        memcpy(text + at, flag, sizeof(flag) - 1);
        l = read_text(text, n);
        assert_non_null(find(&l, "server-bypass", "MSCCL++"));
        doctor_list_free(&l);
    }
    free(text);
}

/* Whole words of real lines in any order, zeros, cut brackets: no crash, and no more than the room. */
static void any_bytes_are_read_without_harm(void **unused)
{
    static const char *const words[] = {"Using [", "'CUSTOM'", "', '", "\"", "]", "] all-reduce backends", "for group '", "\n",
                                        "allreduce_strategy", "=", ": '", "<AllReduceStrategy.", "disable_custom_all_reduce=",
                                        "True", "tp_size=", "99999999999999999999", "Custom allreduce is disabled ", ".",
                                        "moe_a2a_backend=", "Enabled custom fusions:", "allreduce_rms"};
    char text[4096];
    unsigned seed = 7;

    (void)unused;
    for (int round = 0; round < 3000; round++) {
        size_t n = 0;
        struct doctor_list l;
        while (n < sizeof(text) - 64) {
            seed = seed * 1103515245u + 12345u;
            if ((seed >> 16) % 4 == 0) {
                text[n++] = (char)(seed >> 20);
            } else {
                const char *w = words[(seed >> 18) % (sizeof(words) / sizeof(words[0]))];
                memcpy(text + n, w, strlen(w));
                n += strlen(w);
            }
        }
        l = read_text(text, n);
        assert_true(l.count <= DOCTOR_SAID_MAX + 2);
        doctor_list_free(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_line_of_a_server_leads_to_its_switch),
        cmocka_unit_test(flags_that_are_off_and_source_code_say_nothing),
        cmocka_unit_test(the_same_line_of_eight_workers_is_one_finding),
        cmocka_unit_test(a_flag_is_found_anywhere_in_a_very_long_line),
        cmocka_unit_test(any_bytes_are_read_without_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
