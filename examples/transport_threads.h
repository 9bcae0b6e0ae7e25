// transport_threads.h -- messages between ranks that are threads of one process
//
//     threads_hub_desc desc = { 4, 0, 0, 0, 0 };
//     threads_hub hub;
//     if (!threads_hub_open(&hub, &desc)) ...             // no memory
//     transport = threads_hub_join(&hub, rank);           // one for each thread; run_desc.transport = &transport
//     threads_hub_leave(&hub, rank);                      // this rank ends, or gives up: others get "peer lost"
//     threads_hub_close(&hub);                            // when all threads have ended
//
// A message is copied once, from the sender's memory to the receiver's, by whichever of the two comes second. With a
// rate and a latency it arrives no sooner than a link of that speed would deliver it, messages of one direction between
// two ranks one after the other: so schedules can be measured without a network.
//
// Include tl_strategy.h first. Needs pthreads and clock_gettime (_POSIX_C_SOURCE 200809L or later).
#ifndef TRANSPORT_THREADS_H
#define TRANSPORT_THREADS_H

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct threads_hub_desc {
    int32_t  rank_count;         // > 0
    int32_t  message_limit;      // under way at a time, of all ranks; 0 = no limit
    uint64_t bytes_per_second;   // of each direction between two ranks; 0 = at once
    uint64_t latency_ns;
    uint64_t poll_limit;         // polls of a message after which its peer counts as lost; 0 = no limit
} threads_hub_desc;

typedef struct threads_message {
    int32_t   is_used, is_send, source, target;
    uint32_t  tag;
    uint64_t  number;            // in the order in which they were begun
    const void *from;
    void     *to;
    uint64_t  bytes, polls;
    int32_t   is_matched;        // the other side has come
    tl_result result;            // of a matched message
    uint64_t  arrives_ns;
} threads_message;

typedef struct threads_rank { struct threads_hub *hub; int32_t rank; } threads_rank;    // self of a transport

typedef struct threads_hub {
    threads_hub_desc  desc;
    pthread_mutex_t   lock;
    threads_message  *messages;  // [message_count] grown where there is no limit
    int32_t           message_count;
    uint64_t          begun_count;
    uint64_t         *free_ns;   // [rank_count x rank_count] when a direction is free again
    uint8_t          *has_left;  // [rank_count]
    threads_rank     *ranks;     // [rank_count]
    tl_link           link;      // of a desc with a rate
} threads_hub;

static uint64_t threads_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline void threads_hub_close(threads_hub *hub) {
    free(hub->messages);
    free(hub->free_ns);
    free(hub->has_left);
    free(hub->ranks);
    pthread_mutex_destroy(&hub->lock);
    memset(hub, 0, sizeof *hub);
}

// 0 = no memory.
static inline int threads_hub_open(threads_hub *hub, const threads_hub_desc *desc) {
    size_t ranks = (size_t)desc->rank_count;
    int32_t i;
    memset(hub, 0, sizeof *hub);
    hub->desc = *desc;
    hub->message_count = desc->message_limit ? desc->message_limit : 64 * desc->rank_count;
    if (pthread_mutex_init(&hub->lock, NULL)) return 0;
    hub->messages = (threads_message *)calloc((size_t)hub->message_count, sizeof *hub->messages);
    hub->free_ns = (uint64_t *)calloc(ranks * ranks, sizeof *hub->free_ns);
    hub->has_left = (uint8_t *)calloc(ranks, 1);
    hub->ranks = (threads_rank *)calloc(ranks, sizeof *hub->ranks);
    if (!hub->messages || !hub->free_ns || !hub->has_left || !hub->ranks) {
        threads_hub_close(hub);
        return 0;
    }
    hub->link.bytes_per_second = desc->bytes_per_second;
    hub->link.latency_ns = desc->latency_ns;
    for (i = 0; i < desc->rank_count; i++) {
        hub->ranks[i].hub = hub;
        hub->ranks[i].rank = i;
    }
    return 1;
}

// The message of the other side that came first of those that match; NULL = none.
static threads_message *threads_find_match(threads_hub *hub, const threads_message *message) {
    threads_message *found = NULL;
    int32_t i;
    for (i = 0; i < hub->message_count; i++) {
        threads_message *other = &hub->messages[i];
        if (!other->is_used || other->is_matched || other->is_send == message->is_send || other->tag != message->tag ||
            other->source != message->source || other->target != message->target) continue;
        if (!found || other->number < found->number) found = other;
    }
    return found;
}

// Both sides are there: copy, and say when it arrives.
static void threads_match(threads_hub *hub, threads_message *a, threads_message *b) {
    const threads_hub_desc *desc = &hub->desc;
    threads_message *sent = a->is_send ? a : b, *received = a->is_send ? b : a;
    uint64_t *free_ns = &hub->free_ns[(size_t)a->source * (size_t)desc->rank_count + (size_t)a->target];
    uint64_t now = desc->bytes_per_second || desc->latency_ns ? threads_now_ns() : 0;
    a->is_matched = b->is_matched = 1;
    a->result = b->result = sent->bytes == received->bytes ? TL_OK : TL_ERROR_MISMATCH;
    if (a->result) return;
    memcpy(received->to, sent->from, (size_t)sent->bytes);
    if (!now) return;
    if (*free_ns < now) *free_ns = now;
    if (desc->bytes_per_second) *free_ns += (uint64_t)((double)sent->bytes * 1e9 / (double)desc->bytes_per_second);
    *free_ns += desc->latency_ns;
    a->arrives_ns = b->arrives_ns = *free_ns;
}

// Twice as many messages. 0 = there is a limit, or no memory.
static int threads_grow(threads_hub *hub) {
    size_t count = (size_t)hub->message_count;
    threads_message *grown = NULL;
    if (!hub->desc.message_limit && hub->message_count <= INT32_MAX / 2)
        grown = (threads_message *)realloc(hub->messages, 2 * count * sizeof *grown);
    if (!grown) return 0;
    memset(grown + count, 0, count * sizeof *grown);
    hub->messages = grown;
    hub->message_count *= 2;
    return 1;
}

static tl_result threads_begin(threads_rank *rank, threads_message message, int32_t *request) {
    threads_hub *hub = rank->hub;
    threads_message *place, *other;
    int32_t i = 0;
    tl_result result = TL_OK;
    pthread_mutex_lock(&hub->lock);
    while (i < hub->message_count && hub->messages[i].is_used) i++;
    if (i == hub->message_count && !threads_grow(hub)) result = TL_ERROR_NO_MEMORY;
    else {
        place = &hub->messages[i];
        message.is_used = 1;
        message.number = hub->begun_count++;
        other = threads_find_match(hub, &message);
        *place = message;
        *request = i;
        if (other) threads_match(hub, place, other);
    }
    pthread_mutex_unlock(&hub->lock);
    return result;
}

static tl_result threads_send(void *self, int32_t peer, uint32_t tag, const void *data, uint64_t bytes, int32_t *request) {
    threads_rank *rank = (threads_rank *)self;
    threads_message message;
    memset(&message, 0, sizeof message);
    message.is_send = 1;
    message.source = rank->rank;
    message.target = peer;
    message.tag = tag;
    message.from = data;
    message.bytes = bytes;
    return threads_begin(rank, message, request);
}

static tl_result threads_receive(void *self, int32_t peer, uint32_t tag, void *data, uint64_t bytes, int32_t *request) {
    threads_rank *rank = (threads_rank *)self;
    threads_message message;
    memset(&message, 0, sizeof message);
    message.source = peer;
    message.target = rank->rank;
    message.tag = tag;
    message.to = data;
    message.bytes = bytes;
    return threads_begin(rank, message, request);
}

static tl_result threads_poll(void *self, int32_t request) {
    threads_hub *hub = ((threads_rank *)self)->hub;
    threads_message *message;
    tl_result result = TL_NOT_READY;
    pthread_mutex_lock(&hub->lock);
    message = &hub->messages[request];
    if (message->is_matched && (message->result || !message->arrives_ns || threads_now_ns() >= message->arrives_ns))
        result = message->result;
    else if (!message->is_matched && hub->has_left[message->is_send ? message->target : message->source])
        result = TL_ERROR_PEER_LOST;
    else if (hub->desc.poll_limit && ++message->polls >= hub->desc.poll_limit) result = TL_ERROR_PEER_LOST;
    if (result != TL_NOT_READY) message->is_used = 0;
    pthread_mutex_unlock(&hub->lock);
    return result;
}

static void threads_cancel(void *self, int32_t request) {
    threads_hub *hub = ((threads_rank *)self)->hub;
    pthread_mutex_lock(&hub->lock);
    hub->messages[request].is_used = 0;
    pthread_mutex_unlock(&hub->lock);
}

static inline tl_transport threads_hub_join(threads_hub *hub, int32_t rank) {
    tl_transport transport;
    transport.self = &hub->ranks[rank];
    transport.rank = rank;
    transport.rank_count = hub->desc.rank_count;
    transport.send = threads_send;
    transport.receive = threads_receive;
    transport.poll = threads_poll;
    transport.cancel = threads_cancel;
    transport.link = hub->link.bytes_per_second ? &hub->link : NULL;
    return transport;
}

static inline void threads_hub_leave(threads_hub *hub, int32_t rank) {
    pthread_mutex_lock(&hub->lock);
    hub->has_left[rank] = 1;
    pthread_mutex_unlock(&hub->lock);
}
#endif
