#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#if !defined(TL_NO_STDIO) && !defined(TL_NO_TEXT)

// -- files --
//
// One reader and one writer for all. What is written goes to a new file beside the one that it replaces, and
// takes its name when it is whole:
//
//     path --follow links--> target   a file, or nothing: target.tl_tmp, made anew --> renamed to target
//                                     anything else, or below /proc/ or /dev/fd/: written as it is
//
// The temporary file is made exclusively, so that nobody can put a link in its place. It has the mode and,
// where that is allowed, the owner of what it replaces. Other hard links to the replaced file keep the old
// content. Without POSIX (TLI_POSIX_FILES) links are not followed, every path gets a temporary file with a mode
// and an owner of its own, and another process could make that file first.

static tl_result tli_fail_path(tl_env *env, tl_result code, tli_function function, tli_rule rule,
                               const char *path) {
    int why = errno;
    tli_sentence s = tli_begin_error(env, code, function, rule, 0, 0);
    tli_put_text(&s, path);
    code = tli_end_error(env, &s, code);
    errno = why;    // the log function may have changed it
    return code;
}

// Read a whole file; release the text with tli_release.
static tl_result tli_read_file(tl_env *env, tli_function function, const char *path, char **text,
                               size_t *length) {
    FILE *file = fopen(path, "rb");
    void *bytes = NULL;
    int32_t capacity = 0;
    size_t got = 1;
    tl_result result = TL_OK;
    *text = NULL;
    *length = 0;
    if (!file) return tli_fail_path(env, TL_ERROR_IO, function, TLI_RULE(PATH_CANNOT_OPEN), path);
    while (!result && got) {
        if (*length > TLI_TEXT_LIMIT) {
            result = tli_fail_path(env, TL_ERROR_PARSE, function, TLI_RULE(PATH_MORE_THAN_2_30_BYTES_IN), path);
        } else if (!tli_grow(env, &bytes, &capacity, (int32_t)*length, (int64_t)*length + 4096, 1)) {
            result = tli_fail_path(env, TL_ERROR_NO_MEMORY, function, TLI_RULE(PATH_NO_MEMORY_TO_HOLD), path);
        } else {
            got = fread((char *)bytes + *length, 1, (size_t)capacity - *length, file);
            *length += got;
        }
    }
    if (!result && ferror(file))
        result = tli_fail_path(env, TL_ERROR_IO, function, TLI_RULE(PATH_CANNOT_READ), path);
    fclose(file);
    *text = (char *)bytes;
    if (!result) return TL_OK;
    tli_release(env, bytes);
    *text = NULL;
    *length = 0;
    return result;
}

#define TLI_PATH_LIMIT 472
#define TLI_FILE_SUFFIX ".tl_tmp"
#define TLI_FILE_PARTS 1000         // names tried for a temporary file: .tl_tmp, .tl_tmp1, ... .tl_tmp999
#define TLI_FILE_IN_PLACE (-1)      // tl_file_sink.part: there is no temporary file

// The path of the temporary file.
static void tli_find_part_path(const tl_file_sink *file, char *part, size_t size) {
    tli_writer w = tli_writer_of(part, size);
    tli_put(&w, file->path);
    tli_put(&w, TLI_FILE_SUFFIX);
    if (file->part > 0) tli_put_u64(&w, (uint64_t)file->part);
    tli_finish(&w);
}

#ifdef TLI_POSIX_FILES
#if defined(__STRICT_ANSI__) && !defined(__cplusplus)
// What the headers declare only where a program asks for POSIX before it includes the first of them.
ssize_t (readlink)(const char *, char *, size_t);
FILE *(fdopen)(int, const char *);
int (fileno)(FILE *);
int (fsync)(int);
int (fchmod)(int, mode_t);
int (fchown)(int, uid_t, gid_t);
#endif

static int tli_begins_with(const char *text, const char *prefix) {
    while (*prefix && *text == *prefix) { text++; prefix++; }
    return !*prefix;
}

// What is neither a file nor absent is written in place, and so is what a path below /proc/ or /dev/fd/ names:
// a descriptor that is open already. /dev/stdout is a link to such a path.
static int tli_is_in_place(const char *path) {
    struct stat now;
    return tli_begins_with(path, "/proc/") || tli_begins_with(path, "/dev/fd/") ||
           ((stat)(path, &now) == 0 && !S_ISREG(now.st_mode));
}

// Replace a path that is a link by what it leads to. 0 = that is too long, or leads in a circle.
static int tli_follow_links(char *path) {
    char target[TLI_PATH_LIMIT + 1];
    int hops;
    for (hops = 0; hops < 40 && !tli_is_in_place(path); hops++) {
        ssize_t length = (readlink)(path, target, sizeof target);
        size_t folder = tli_text_length(path);
        if (length < 0) return 1;
        while (folder && path[folder - 1] != '/') folder--;
        if (*target == '/') folder = 0;
        if (folder + (size_t)length > TLI_PATH_LIMIT) {
            errno = ENAMETOOLONG;
            return 0;
        }
        tli_copy(path + folder, target, (size_t)length);
        path[folder + (size_t)length] = 0;
    }
    if (hops < 40) return 1;
    errno = ELOOP;
    return 0;
}

// Make the temporary file; NULL: errno says why not.
static FILE *tli_make_part(tl_file_sink *file) {
    char part[TLI_PATH_LIMIT + 16];
    struct stat now;
    int exists = (stat)(file->path, &now) == 0, number = -1, unused = 0;
    FILE *stream;
    if (exists && (access)(file->path, W_OK) != 0) return NULL;   // rename would replace it all the same
    for (file->part = 0; file->part < TLI_FILE_PARTS; file->part++) {
        tli_find_part_path(file, part, sizeof part);
        number = (open)(part, O_WRONLY | O_CREAT | O_EXCL, exists ? 0600 : 0666);
        if (number >= 0 || errno != EEXIST) break;
    }
    if (number < 0) return NULL;
    if (exists) unused = (fchown)(number, now.st_uid, now.st_gid);    // may fail where the owner is another
    if (exists) unused += (fchmod)(number, now.st_mode & 07777);
    (void)unused;
    stream = (fdopen)(number, "wb");
    if (!stream) {
        (close)(number);
        remove(part);
    }
    return stream;
}

static FILE *tli_open_target(tl_file_sink *file) {
    if (!tli_follow_links(file->path)) return NULL;
    if (!tli_is_in_place(file->path)) return tli_make_part(file);
    file->part = TLI_FILE_IN_PLACE;
    return fopen(file->path, "wb");
}

// Bring what was written to the disk; 0 = it did not get there.
static int tli_sync_file(FILE *stream) { return fflush(stream) == 0 && (fsync)((fileno)(stream)) == 0; }

// Bring the name of a file, which stands in its folder, to the disk. A failure is not reported.
static void tli_sync_folder(const char *path) {
    char folder[TLI_PATH_LIMIT + 2] = ".";
    size_t length = tli_text_length(path);
    int number;
    while (length && path[length - 1] != '/') length--;
    tli_copy(folder, path, length);
    if (length) folder[length] = 0;
    number = (open)(folder, O_RDONLY);
    if (number < 0) return;
    (void)(fsync)(number);
    (close)(number);
}
#else
// Make the temporary file. Between the two calls somebody else could make it: standard C knows no better.
static FILE *tli_open_target(tl_file_sink *file) {
    char part[TLI_PATH_LIMIT + 16];
    for (file->part = 0; file->part < TLI_FILE_PARTS; file->part++) {
        FILE *other;
        tli_find_part_path(file, part, sizeof part);
        other = fopen(part, "rb");
        if (!other) return fopen(part, "wb");
        fclose(other);
    }
    return NULL;
}

static int tli_sync_file(FILE *stream) { return fflush(stream) == 0; }
static void tli_sync_folder(const char *path) { (void)path; }
#endif

static tl_result tli_open_file(tl_env *env, tli_function function, const char *path, tl_file_sink *file) {
    size_t length = tli_text_length(path);
    tli_zero(file, sizeof *file);
    if (!length || length > TLI_PATH_LIMIT)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(PATH_MUST_BE_1_TO_472_BYTES));
    tli_copy(file->path, path, length + 1);
    errno = 0;
    file->file = tli_open_target(file);
    if (file->file) return TL_OK;
    tli_zero(file, sizeof *file);
    return tli_fail_path(env, TL_ERROR_IO, function, TLI_RULE(PATH_CANNOT_OPEN), path);
}

static tl_result tli_write_file(void *user, const char *text, size_t length) {
    FILE *file = (FILE *)((tl_file_sink *)user)->file;
    return fwrite(text, 1, length, file) == length ? TL_OK : TL_ERROR_IO;
}

static int tli_move_file(const char *from, const char *to) {
#ifdef _WIN32
    remove(to);  // rename does not replace a file there
#endif
    return rename(from, to) == 0;
}

// Close a file, and give it its name. written: what the writer returned.
static tl_result tli_close_file(tl_env *env, tli_function function, tl_file_sink *file, tl_result written) {
    tl_file_sink done = *file;
    FILE *stream = (FILE *)file->file;
    char part[TLI_PATH_LIMIT + 16];
    int in_place = file->part == TLI_FILE_IN_PLACE, failed = ferror(stream), why = 0;
    tli_find_part_path(file, part, sizeof part);
    tli_zero(file, sizeof *file);
    if (!failed && !written) errno = 0;
    if (!failed && !written && done.durable && !in_place && !tli_sync_file(stream)) failed = 1;
    why = errno;
    if (fclose(stream) && !failed) {  // writes what is buffered: a full disk may be noticed only here
        failed = 1;
        why = errno;
    }
    if (!failed && !written && (in_place || tli_move_file(part, done.path))) {
        if (done.durable && !in_place) tli_sync_folder(done.path);
        return TL_OK;
    }
    if (!failed && !written) why = errno;
    if (!in_place) remove(part);
    errno = why;
    if (failed) return tli_fail_path(env, TL_ERROR_IO, function, TLI_RULE(PATH_CANNOT_WRITE), done.path);
    if (written) return written;
    return tli_fail_path(env, TL_ERROR_IO, function, TLI_RULE(PATH_CANNOT_REPLACE), done.path);
}

TLI_IMPL tl_result tl_init_file_sink(tl_env *env, const char *path, tl_file_sink *file, tl_sink *sink) {
    tl_result result;
    TL_ASSERT(path && file && sink);
    tli_zero(sink, sizeof *sink);
    result = tli_open_file(env, TLI_IN(INIT_FILE_SINK), path, file);
    if (result) return result;
    sink->write = tli_write_file;
    sink->user = file;
    return TL_OK;
}

TLI_IMPL tl_result tl_finish_file_sink(tl_env *env, tl_file_sink *file, tl_result written) {
    TL_ASSERT(file);
    if (file->file) return tli_close_file(env, TLI_IN(FINISH_FILE_SINK), file, written);
    if (written) return written;
    return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(FINISH_FILE_SINK), TLI_RULE(FILE_IS_NOT_OPEN));
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
