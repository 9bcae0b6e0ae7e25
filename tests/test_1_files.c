// [1] CORE: files that are whole or as they were: full disks, modes, links, what somebody planted, pipes, devices.
#define _POSIX_C_SOURCE 200809L  // symlink, setrlimit
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

// -- a folder for each test --

static char folder[200];

static int make_folder(void **state) {
    const char *base = getenv("TMPDIR");
    (void)state;
    snprintf(folder, sizeof folder, "%.100s/test_1_files_XXXXXX", base ? base : "/tmp");
    return mkdtemp(folder) ? 0 : -1;
}

static const char *in_folder(const char *name) {
    static char paths[64][480];
    static int at;
    char *path = paths[at++ % 64];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

// The files in the folder; with `removes` all of them go.
static int count_files(int removes) {
    DIR *listing = opendir(folder);
    struct dirent *entry;
    int count = 0;
    assert_non_null(listing);
    while ((entry = readdir(listing)) != NULL) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        count++;
        if (removes) assert_int_equal(remove(in_folder(entry->d_name)), 0);
    }
    closedir(listing);
    return count;
}

static int remove_folder(void **state) {
    (void)state;
    (void)count_files(1);
    return rmdir(folder);
}

static void put_file(const char *path, const char *text, mode_t mode) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fputs(text, file) < 0, 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void must_be_file(const char *path, const char *wanted) {
    char *text = read_text(path, NULL);
    assert_non_null(text);
    assert_string_equal(text, wanted);
    free(text);
}

static mode_t mode_of(const char *path) {
    struct stat now;
    assert_int_equal(lstat(path, &now), 0);
    return now.st_mode & (S_IFMT | 07777);
}

// Write a text by the sink: how that ends, and errno.
static tl_result put(tl_env *env, const char *path, const char *text, size_t length) {
    tl_file_sink file;
    tl_sink sink;
    tl_result result = tl_init_file_sink(env, path, &file, &sink);
    if (result) {
        assert_null(file.file);
        assert_null(sink.write);
        return result;
    }
    return tl_finish_file_sink(env, &file, sink.write(sink.user, text, length));
}

static void must_put(const char *path, const char *text) {
    tl_env env = silent_env();
    if (put(&env, path, text, strlen(text))) fail_msg("%s", env.error.text);
}

// -- whole files --

static void a_file_has_its_name_when_it_is_whole(void **state) {
    tl_env env = silent_env();
    tl_file_sink file;
    tl_sink sink;
    int durable;
    (void)state;
    for (durable = 0; durable < 2; durable++) {
        const char *path = in_folder("whole");
        assert_int_equal(tl_init_file_sink(&env, path, &file, &sink), TL_OK);
        file.durable = durable;
        assert_int_equal(sink.write(sink.user, "te", 2), TL_OK);
        assert_int_equal(access(path, F_OK), -1);
        assert_int_equal(sink.write(sink.user, "xt", 2), TL_OK);
        assert_int_equal(tl_finish_file_sink(&env, &file, TL_OK), TL_OK);
        must_be_file(path, "text");
        assert_int_equal(count_files(1), 1);
        assert_null(file.file);
        assert_int_equal(tl_finish_file_sink(&env, &file, TL_OK), TL_ERROR_INVALID_ARG);
        assert_string_equal(env.error.text, "tl_finish_file_sink: file: is not open");
        assert_int_equal(tl_finish_file_sink(&env, &file, TL_ERROR_KERNEL), TL_ERROR_KERNEL);
    }
}

static void what_is_given_up_leaves_the_old_file(void **state) {
    const char *path = in_folder("old");
    tl_env env = silent_env();
    tl_file_sink file;
    tl_sink sink;
    (void)state;
    put_file(path, "old", 0640);
    assert_int_equal(tl_init_file_sink(&env, path, &file, &sink), TL_OK);
    assert_int_equal(sink.write(sink.user, "ne", 2), TL_OK);
    assert_int_equal(tl_finish_file_sink(&env, &file, TL_ERROR_KERNEL), TL_ERROR_KERNEL);
    must_be_file(path, "old");
    assert_int_equal(count_files(0), 1);
    assert_int_equal(tl_init_file_sink(&env, path, &file, &sink), TL_OK);
    assert_int_equal(sink.write(sink.user, "new", 3), TL_OK);
    must_be_file(path, "old");
    assert_int_equal(tl_finish_file_sink(&env, &file, TL_OK), TL_OK);
    must_be_file(path, "new");
    assert_int_equal(count_files(0), 1);
}

static void two_who_write_one_file_do_not_mix(void **state) {
    const char *path = in_folder("two");
    tl_env env = silent_env();
    tl_file_sink files[2];
    tl_sink sinks[2];
    int i;
    (void)state;
    for (i = 0; i < 2; i++) assert_int_equal(tl_init_file_sink(&env, path, &files[i], &sinks[i]), TL_OK);
    for (i = 0; i < 2; i++) assert_int_equal(sinks[i].write(sinks[i].user, i ? "bbb" : "aa", (size_t)i + 2), TL_OK);
    assert_int_equal(tl_finish_file_sink(&env, &files[1], TL_OK), TL_OK);
    must_be_file(path, "bbb");
    assert_int_equal(tl_finish_file_sink(&env, &files[0], TL_OK), TL_OK);
    must_be_file(path, "aa");
    assert_int_equal(count_files(0), 1);
}

static void a_path_that_cannot_be_written_is_named(void **state) {
    char many[600];
    tl_env env = silent_env();
    tl_file_sink file;
    tl_sink sink;
    (void)state;
    assert_int_equal(put(&env, "no_such_directory/x.svg", "x", 1), TL_ERROR_IO);
    assert_int_equal(errno, ENOENT);
    assert_string_equal(env.error.text, "tl_init_file_sink: path: cannot open no_such_directory/x.svg");
    assert_int_equal(put(&env, folder, "x", 1), TL_ERROR_IO);
    assert_int_equal(errno, EISDIR);
    assert_int_equal(put(&env, "", "x", 1), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_init_file_sink: path: must be 1 to 472 bytes");
    memset(many, 'x', sizeof many);
    memcpy(many, "none/", 5);
    many[473] = 0;
    assert_int_equal(put(&env, many, "x", 1), TL_ERROR_INVALID_ARG);
    many[472] = 0;
    assert_int_equal(put(&env, many, "x", 1), TL_ERROR_IO);
    assert_int_equal(tl_init_file_sink(&env, many, &file, &sink), TL_ERROR_IO);
    assert_int_equal(tl_finish_file_sink(&env, &file, TL_ERROR_IO), TL_ERROR_IO);  // after an init that failed
    if (geteuid() == 0) return;     // nobody forbids anything to root
    put_file(in_folder("mine"), "old", 0444);
    assert_int_equal(put(&env, in_folder("mine"), "new", 3), TL_ERROR_IO);
    assert_int_equal(errno, EACCES);
    must_be_file(in_folder("mine"), "old");
    assert_int_equal(count_files(0), 1);
}

// -- full disks --

static void set_limit(rlim_t bytes) {
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

// A limit of the size of files stands for the end of the disk: noticed by a write, or when the buffer is written.
static void a_disk_that_fills_up_keeps_the_old_file(void **state) {
    static char text[200000];
    static const size_t lengths[] = { 3, 5000, sizeof text };
    tl_env env = silent_env();
    size_t i;
    int exists, durable;
    (void)state;
    memset(text, 'a', sizeof text);
    signal(SIGXFSZ, SIG_IGN);
    for (i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (exists = 0; exists < 2; exists++)
            for (durable = 0; durable < 2; durable++) {
                const char *path = in_folder("full");
                tl_file_sink file;
                tl_sink sink;
                tl_result result;
                if (exists) put_file(path, "old", 0600);
                set_limit(2);
                result = tl_init_file_sink(&env, path, &file, &sink);
                assert_int_equal(result, TL_OK);
                file.durable = durable;
                (void)sink.write(sink.user, text, lengths[i]);
                result = tl_finish_file_sink(&env, &file, TL_OK);      // whatever the caller believes
                assert_int_equal(errno, EFBIG);
                set_limit(RLIM_INFINITY);
                assert_int_equal(result, TL_ERROR_IO);
                assert_non_null(strstr(env.error.text, "tl_finish_file_sink: path: cannot write "));
                if (exists) must_be_file(path, "old");
                assert_int_equal(count_files(1), exists);
            }
}

static void a_graph_on_a_full_disk_keeps_the_old_file(void **state) {
    static const char text[] = "tlg 1\nnode 0 x input fwd=0 bwd=0 out=4 needs=none in=-\nnode 1 a op fwd=1 bwd=1 out=4 needs=in in=0\n";
    const char *path = in_folder("keep.tlg");
    tl_env env = silent_env();
    tl_graph graph, again;
    long limit;
    int done = 0;
    (void)state;
    assert_int_equal(tl_parse_graph(&env, text, strlen(text), &graph), TL_OK);
    signal(SIGXFSZ, SIG_IGN);
    for (limit = 0; !done; limit++) {
        tl_result result;
        put_file(path, "old", 0600);
        set_limit((rlim_t)limit);
        result = tl_write_graph(&env, &graph, path);
        set_limit(RLIM_INFINITY);
        done = !result;
        if (!done) {
            char wanted[600];
            assert_int_equal(result, TL_ERROR_IO);
            snprintf(wanted, sizeof wanted, "tl_write_graph: path: cannot write %s", path);
            assert_string_equal(env.error.text, wanted);
            must_be_file(path, "old");
        }
        assert_int_equal(count_files(0), 1);
        assert_int_equal(mode_of(path), S_IFREG | 0600);
    }
    assert_int_equal(limit - 1, (long)tl_print_graph(&graph, NULL, 0));
    assert_int_equal(tl_read_graph(&env, path, &again), TL_OK);
    tl_free_graph(&env, &again);
    tl_free_graph(&env, &graph);
}

static void a_full_device_is_refused_and_stays(void **state) {
    static char text[100000];
    tl_env env = silent_env();
    size_t length;
    (void)state;
    if (access("/dev/full", W_OK) != 0) { printf("SKIPPED a_full_device_is_refused_and_stays: no /dev/full\n"); skip(); }
    for (length = 1; length <= sizeof text; length *= 10) {
        assert_int_equal(put(&env, "/dev/full", text, length), TL_ERROR_IO);
        assert_int_equal(errno, ENOSPC);
        assert_string_equal(env.error.text, "tl_finish_file_sink: path: cannot write /dev/full");
    }
    assert_true(S_ISCHR(mode_of("/dev/full")));
}

// -- modes and links --

static void a_file_keeps_its_mode(void **state) {
    static const mode_t modes[] = { 0600, 0640, 0644, 0666, 0700, 0755, 0200 };
    mode_t before = umask(027);
    size_t i;
    (void)state;
    for (i = 0; i < sizeof modes / sizeof *modes; i++) {
        const char *path = in_folder("mode");
        put_file(path, "old", modes[i]);
        must_put(path, "new");
        assert_int_equal(mode_of(path), S_IFREG | modes[i]);
        assert_int_equal(count_files(1), 1);
    }
    must_put(in_folder("fresh"), "new");
    assert_int_equal(mode_of(in_folder("fresh")), S_IFREG | 0640);
    umask(before);
}

// While it is written, nobody else can open what will be a secret.
static void a_secret_is_never_open_to_others(void **state) {
    tl_env env = silent_env();
    tl_file_sink file;
    tl_sink sink;
    mode_t before = umask(0);
    (void)state;
    put_file(in_folder("secret"), "old", 0600);
    assert_int_equal(tl_init_file_sink(&env, in_folder("secret"), &file, &sink), TL_OK);
    assert_int_equal(mode_of(in_folder("secret.tl_tmp")), S_IFREG | 0600);
    assert_int_equal(tl_finish_file_sink(&env, &file, TL_OK), TL_OK);
    umask(before);
}

static void a_link_is_followed_and_stays(void **state) {
    const char *target = in_folder("target");
    char chain[480], aside[480];
    int i;
    (void)state;
    snprintf(aside, sizeof aside, "../%s/target", strrchr(folder, '/') + 1);
    for (i = 0; i < 5; i++) {
        const char *path = in_folder("link");
        int exists = i != 3;
        if (exists) put_file(target, "old", 0604);
        snprintf(chain, sizeof chain, "%s", i == 0 ? target : i == 1 || i == 3 ? "target" : i == 2 ? "second" : aside);
        assert_int_equal(symlink(chain, path), 0);
        if (i == 2) assert_int_equal(symlink(aside, in_folder("second")), 0);
        must_put(path, "new");
        assert_true(S_ISLNK(mode_of(path)));
        must_be_file(target, "new");
        if (exists) assert_int_equal(mode_of(target), S_IFREG | 0604);
        assert_int_equal(count_files(1), 2 + (i == 2));
    }
}

static void links_in_a_circle_are_refused(void **state) {
    tl_env env = silent_env();
    (void)state;
    assert_int_equal(symlink("b", in_folder("a")), 0);
    assert_int_equal(symlink("a", in_folder("b")), 0);
    assert_int_equal(put(&env, in_folder("a"), "x", 1), TL_ERROR_IO);
    assert_int_equal(errno, ELOOP);
    assert_int_equal(count_files(0), 2);
}

// What stands where the temporary file would, links above all, is neither followed nor touched.
static void what_was_planted_is_not_touched(void **state) {
    const char *victim = in_folder("victim"), *path = in_folder("x");
    int kind;
    (void)state;
    for (kind = 0; kind < 5; kind++) {
        const char *planted = in_folder("x.tl_tmp"), *second = in_folder("x.tl_tmp1");
        int count = 4;
        put_file(victim, "precious", 0600);
        if (kind == 0) assert_int_equal(symlink("victim", planted), 0);
        else if (kind == 1) assert_int_equal(link(victim, planted), 0);
        else if (kind == 2) put_file(planted, "precious", 0600);
        else if (kind == 3) assert_int_equal(symlink("nothing", planted), 0);
        else assert_int_equal(mkdir(planted, 0700), 0);
        assert_int_equal(symlink("victim", second), 0);
        must_put(path, "new");
        must_be_file(path, "new");
        must_be_file(victim, "precious");
        assert_int_equal(access(in_folder("nothing"), F_OK), -1);
        assert_int_equal(count_files(0), count);
        if (kind == 4) { assert_int_equal(rmdir(planted), 0); count--; }
        assert_int_equal(count_files(1), count);
    }
}

// -- what is no file --

static void a_pipe_is_written_through(void **state) {
    const char *path = in_folder("fifo");
    tl_env env = silent_env();
    char got[8] = "", through[40];
    int number, ends[2], i;
    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0);
    number = open(path, O_RDWR | O_NONBLOCK);
    assert_true(number >= 0);
    assert_int_equal(symlink("fifo", in_folder("link")), 0);
    for (i = 0; i < 2; i++) {
        must_put(i ? in_folder("link") : path, "new");
        assert_int_equal(read(number, got, sizeof got), 3);
        assert_memory_equal(got, "new", 3);
        assert_true(S_ISFIFO(mode_of(path)));
    }
    close(number);
    assert_int_equal(count_files(0), 2);
    if (access("/dev/fd/0", F_OK) != 0) return;
    assert_int_equal(pipe(ends), 0);
    snprintf(through, sizeof through, "/dev/fd/%d", ends[1]);
    if (put(&env, through, "pip", 3)) fail_msg("%s", env.error.text);
    assert_int_equal(read(ends[0], got, sizeof got), 3);
    assert_memory_equal(got, "pip", 3);
    close(ends[0]);
    close(ends[1]);
}

// /dev/stdout may lead to a file: that stays the one which is open.
static void a_file_that_is_open_is_written_as_it_is(void **state) {
    const char *path = in_folder("out"), *alias = in_folder("stdout");
    char through[40];
    struct stat before, after;
    int number;
    (void)state;
    if (access("/proc/self/fd/0", F_OK) != 0) { printf("SKIPPED a_file_that_is_open_is_written_as_it_is: no /proc\n"); skip(); }
    put_file(path, "longer than before", 0600);
    number = open(path, O_WRONLY);
    assert_true(number >= 0);
    assert_int_equal(fstat(number, &before), 0);
    snprintf(through, sizeof through, "/proc/self/fd/%d", number);
    must_put(through, "new");
    must_be_file(path, "new");
    assert_int_equal(symlink(through, alias), 0);
    must_put(alias, "again");
    must_be_file(path, "again");
    assert_int_equal(stat(path, &after), 0);
    assert_true(before.st_ino == after.st_ino);
    close(number);
    assert_int_equal(count_files(0), 2);
}

static void devices_stay_devices(void **state) {
    tl_env env = silent_env();
    tl_file_sink file;
    tl_sink sink;
    (void)state;
    must_put("/dev/null", "x");
    assert_int_equal(tl_init_file_sink(&env, "/dev/null", &file, &sink), TL_OK);
    assert_int_equal(tl_finish_file_sink(&env, &file, TL_ERROR_KERNEL), TL_ERROR_KERNEL);
    assert_true(S_ISCHR(mode_of("/dev/null")));
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_file_has_its_name_when_it_is_whole),
        IN_FOLDER(what_is_given_up_leaves_the_old_file),
        IN_FOLDER(two_who_write_one_file_do_not_mix),
        IN_FOLDER(a_path_that_cannot_be_written_is_named),
        IN_FOLDER(a_disk_that_fills_up_keeps_the_old_file),
        IN_FOLDER(a_graph_on_a_full_disk_keeps_the_old_file),
        cmocka_unit_test(a_full_device_is_refused_and_stays),
        IN_FOLDER(a_file_keeps_its_mode),
        IN_FOLDER(a_secret_is_never_open_to_others),
        IN_FOLDER(a_link_is_followed_and_stays),
        IN_FOLDER(links_in_a_circle_are_refused),
        IN_FOLDER(what_was_planted_is_not_touched),
        IN_FOLDER(a_pipe_is_written_through),
        IN_FOLDER(a_file_that_is_open_is_written_as_it_is),
        cmocka_unit_test(devices_stay_devices),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
