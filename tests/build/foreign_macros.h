// What headers of others leave behind as macros, each as bad as it can be: whoever expands one gets no program. Both headers are
// read below these. Members that hold a function are called as (env->log)(...), and no variable is named so.
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tgmath.h>     // log, exp, pow, round, fmin, ... of C; functions in C++

#ifdef _WIN32
#include <windows.h>
#else
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#ifndef __cplusplus     // libraries may not take names of the standard's containers and algorithms away
#define copy(...)       = foreign =
#define fill(...)       = foreign =
#define find(...)       = foreign =
#define count(...)      = foreign =
#define swap(...)       = foreign =
#define sort(...)       = foreign =
#define move(...)       = foreign =
#define bind(...)       = foreign =
#endif

// Qt
#undef slots
#define slots
#define signals         public
#define emit
#define foreach(...)    = foreign =
#define forever         for (;;)

// assertions of Carbon, of test frameworks and of kernels
#define check(...)      = foreign =
#define verify(...)     = foreign =
#define require(...)    = foreign =
#define check_error(...)  = foreign =
#define expect(...)     = foreign =
#define fail(...)       = foreign =
#define likely(...)     = foreign =
#define unlikely(...)   = foreign =
#define container_of(...) = foreign =
#define panic(...)      = foreign =

// sockets of lwIP, and what ports of POSIX rename
#define send(...)       = foreign =
#define recv(...)       = foreign =
#define receive(...)    = foreign =
#define accept(...)     = foreign =
#define connect(...)    = foreign =
#define listen(...)     = foreign =
#define socket(...)     = foreign =
#define shutdown(...)   = foreign =
#define select(...)     = foreign =
#define poll(...)       = foreign =
#define read(...)       = foreign =
#define write(...)      = foreign =
#define open(...)       = foreign =
#define close(...)      = foreign =
#define seek(...)       = foreign =
#define stat(...)       = foreign =
#define ioctl(...)      = foreign =
#define wait(...)       = foreign =
#define signal(...)     = foreign =
#define index(...)      = foreign =
#define rindex(...)     = foreign =
#define bcopy(...)      = foreign =
#define bzero(...)      = foreign =
#define major(...)      = foreign =
#define minor(...)      = foreign =
#define makedev(...)    = foreign =

// Arduino
#define bit(...)        = foreign =
#define word(...)       = foreign =
#define sq(...)         = foreign =
#define constrain(...)  = foreign =
#define radians(...)    = foreign =
#define degrees(...)    = foreign =
#define lowByte(...)    = foreign =
#define interrupts(...) = foreign =
#define map(...)        = foreign =
#define unmap(...)      = foreign =

// curses
#define clear(...)      = foreign =
#define refresh(...)    = foreign =
#define erase(...)      = foreign =
#define echo(...)       = foreign =
#define timeout(...)    = foreign =
#define border(...)     = foreign =
#define box(...)        = foreign =
#define delay(...)      = foreign =
#define delete_line(...) = foreign =
#define filter(...)     = foreign =
#define scroll(...)     = foreign =
#define meta(...)       = foreign =

// memory and locks of game engines and runtimes
#define alloc(...)      = foreign =
#define allocate(...)   = foreign =
#define release(...)    = foreign =
#define retain(...)     = foreign =
#define lock(...)       = foreign =
#define unlock(...)     = foreign =
#define acquire(...)    = foreign =
#define claim(...)      = foreign =
#define claim_on(...)   = foreign =
#define release_on(...) = foreign =
#define add_block(...)  = foreign =
#define free_block(...) = foreign =
#define add_arena(...)  = foreign =
#define shorten(...)    = foreign =
#define lock_queue(...) = foreign =
#define unlock_queue(...) = foreign =

// verbs that any program has
#define call(...)       = foreign =
#define cancel(...)     = foreign =
#define compress(...)   = foreign =
#define compute(...)    = foreign =
#define convert(...)    = foreign =
#define create(...)     = foreign =
#define create_device(...) = foreign =
#define destroy(...)    = foreign =
#define drop(...)       = foreign =
#define enumerate(...)  = foreign =
#define evaluate(...)   = foreign =
#define evict(...)      = foreign =
#define expand(...)     = foreign =
#define families(...)   = foreign =
#define features(...)   = foreign =
#define find_tensor(...) = foreign =
#define find_weights(...) = foreign =
#define function(...)   = foreign =
#define get(...)        = foreign =
#define get_device_proc(...) = foreign =
#define get_queue(...)  = foreign =
#define set(...)        = foreign =
#define init(...)       = foreign =
#define limits(...)     = foreign =
#define load(...)       = foreign =
#define store(...)      = foreign =
#define make(...)       = foreign =
#define measure(...)    = foreign =
#define memory(...)     = foreign =
#define now_ns(...)     = foreign =
#define observe(...)    = foreign =
#define order(...)      = foreign =
#define prepare(...)    = foreign =
#define print(...)      = foreign =
#define progress(...)   = foreign =
#define properties(...) = foreign =
#define push(...)       = foreign =
#define random(...)     = foreign =
#define refuse(...)     = foreign =
#define replay(...)     = foreign =
#define reset(...)      = foreign =
#define run(...)        = foreign =
#define start(...)      = foreign =
#define step(...)       = foreign =
#define stop(...)       = foreign =
#define submit(...)     = foreign =
#define version(...)    = foreign =
#define applies(...)    = foreign =
#define forward(...)    = foreign =
#define backward(...)   = foreign =
#define counters(...)   = foreign =
#define open_account(...) = foreign =
#define close_account(...) = foreign =
#define measure_account(...) = foreign =
#define reset_peaks(...) = foreign =
#undef min
#undef max
#undef near
#undef far
#define min(...)        = foreign =
#define max(...)        = foreign =
#define near
#define far
