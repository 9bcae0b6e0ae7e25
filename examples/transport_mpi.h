// transport_mpi.h -- messages between ranks that are processes of one MPI job
//
//     mpi_hub_desc desc = { MPI_COMM_WORLD, 0, 0, NULL };
//     mpi_hub hub;
//     MPI_Init(&count, &argv);
//     if (!mpi_hub_open(&hub, &desc)) ...                 // no memory, or MPI refused
//     transport = mpi_hub_join(&hub);                     // run_desc.transport = &transport
//     mpi_hub_close(&hub);                                // after the run was freed
//     MPI_Finalize();
//
// A message is one MPI_Isend or MPI_Irecv, polled by MPI_Test, so nothing blocks, whatever the size. MPI keeps the order
// of messages of one peer and tag. The hub works on a communicator of its own, whose errors are returned instead of
// ending the job. Refused (TL_ERROR_UNSUPPORTED): tags above MPI_TAG_UB, and messages above INT_MAX bytes, which one call
// of MPI cannot count. A message of another length than the receiver waits for is TL_ERROR_MISMATCH there.
//
// MPI does not tell that a peer has gone: a message that has not moved after poll_limit polls is TL_ERROR_PEER_LOST. A send
// that is given up cannot be taken back from MPI, which may read its memory until the job ends.
//
// Include tl_strategy.h first. One thread of a process uses a hub at a time (MPI_THREAD_SINGLE is enough).
#ifndef TRANSPORT_MPI_H
#define TRANSPORT_MPI_H

#include <limits.h>
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct mpi_hub_desc {
    MPI_Comm comm;               // is copied
    int32_t  message_limit;      // under way at a time, of this rank; 0 = no limit
    uint64_t poll_limit;         // polls of a message after which its peer counts as lost; 0 = no limit
    const tl_link *link;         // what messages take, the same on every rank; outlives the hub; 0 = not known
} mpi_hub_desc;

typedef struct mpi_message {
    MPI_Request request;
    uint64_t    bytes, polls;
    int         is_used, is_send;
} mpi_message;

typedef struct mpi_hub {
    mpi_hub_desc desc;
    MPI_Comm     comm;           // of the hub's own
    int          is_open;
    int          rank, rank_count, tag_limit;
    mpi_message *messages;       // [message_count] grown where there is no limit
    int32_t      message_count;
} mpi_hub;

static inline void mpi_hub_close(mpi_hub *hub) {
    if (hub->is_open) MPI_Comm_free(&hub->comm);
    free(hub->messages);
    memset(hub, 0, sizeof *hub);
}

// Every rank of the communicator opens a hub. 0 = no memory, or MPI refused.
static inline int mpi_hub_open(mpi_hub *hub, const mpi_hub_desc *desc) {
    int *limit = NULL, has_limit = 0;
    memset(hub, 0, sizeof *hub);
    hub->desc = *desc;
    hub->message_count = desc->message_limit ? desc->message_limit : 1024;
    hub->messages = (mpi_message *)calloc((size_t)hub->message_count, sizeof *hub->messages);
    if (hub->messages && MPI_Comm_dup(desc->comm, &hub->comm) == MPI_SUCCESS) {
        hub->is_open = 1;
        if (MPI_Comm_set_errhandler(hub->comm, MPI_ERRORS_RETURN) == MPI_SUCCESS &&
            MPI_Comm_rank(hub->comm, &hub->rank) == MPI_SUCCESS &&
            MPI_Comm_size(hub->comm, &hub->rank_count) == MPI_SUCCESS &&
            MPI_Comm_get_attr(hub->comm, MPI_TAG_UB, (void *)&limit, &has_limit) == MPI_SUCCESS) {
            hub->tag_limit = has_limit ? *limit : 32767;    // what every MPI has at least
            return 1;
        }
    }
    mpi_hub_close(hub);
    return 0;
}

static tl_result mpi_explain(int code) {
    int kind = MPI_ERR_OTHER;
    if (code == MPI_SUCCESS) return TL_OK;
    MPI_Error_class(code, &kind);
    return kind == MPI_ERR_TRUNCATE ? TL_ERROR_MISMATCH
         : kind == MPI_ERR_NO_MEM ? TL_ERROR_NO_MEMORY
         : kind == MPI_ERR_RANK || kind == MPI_ERR_TAG || kind == MPI_ERR_COUNT ? TL_ERROR_INVALID_ARG : TL_ERROR_IO;
}

// Twice as many messages. 0 = there is a limit, or no memory.
static int mpi_grow(mpi_hub *hub) {
    size_t count = (size_t)hub->message_count;
    mpi_message *grown = NULL;
    if (!hub->desc.message_limit && hub->message_count <= INT32_MAX / 2)
        grown = (mpi_message *)realloc(hub->messages, 2 * count * sizeof *grown);
    if (!grown) return 0;
    memset(grown + count, 0, count * sizeof *grown);
    hub->messages = grown;
    hub->message_count *= 2;
    return 1;
}

// A place for a message; NULL: *result says why there is none.
static mpi_message *mpi_find_place(mpi_hub *hub, uint32_t tag, uint64_t bytes, int32_t *request, tl_result *result) {
    int32_t i = 0;
    *result = tag > (uint32_t)hub->tag_limit || bytes > INT_MAX ? TL_ERROR_UNSUPPORTED : TL_OK;
    while (!*result && i < hub->message_count && hub->messages[i].is_used) i++;
    if (!*result && i == hub->message_count && !mpi_grow(hub)) *result = TL_ERROR_NO_MEMORY;
    if (*result) return NULL;
    *request = i;
    memset(&hub->messages[i], 0, sizeof hub->messages[i]);
    hub->messages[i].bytes = bytes;
    return &hub->messages[i];
}

static tl_result mpi_send(void *self, int32_t peer, uint32_t tag, const void *data, uint64_t bytes, int32_t *request) {
    mpi_hub *hub = (mpi_hub *)self;
    tl_result result;
    mpi_message *message = mpi_find_place(hub, tag, bytes, request, &result);
    if (!message) return result;
    result = mpi_explain(MPI_Isend(data, (int)bytes, MPI_BYTE, peer, (int)tag, hub->comm, &message->request));
    message->is_send = 1;
    message->is_used = !result;
    return result;
}

static tl_result mpi_receive(void *self, int32_t peer, uint32_t tag, void *data, uint64_t bytes, int32_t *request) {
    mpi_hub *hub = (mpi_hub *)self;
    tl_result result;
    mpi_message *message = mpi_find_place(hub, tag, bytes, request, &result);
    if (!message) return result;
    result = mpi_explain(MPI_Irecv(data, (int)bytes, MPI_BYTE, peer, (int)tag, hub->comm, &message->request));
    message->is_used = !result;
    return result;
}

static void mpi_cancel(void *self, int32_t request) {
    mpi_message *message = &((mpi_hub *)self)->messages[request];
    MPI_Cancel(&message->request);
    MPI_Request_free(&message->request);
    message->is_used = 0;
}

static tl_result mpi_poll(void *self, int32_t request) {
    mpi_hub *hub = (mpi_hub *)self;
    mpi_message *message = &hub->messages[request];
    MPI_Status status;
    int has_ended = 0, bytes = 0;
    tl_result result = mpi_explain(MPI_Test(&message->request, &has_ended, &status));
    if (result) {
        if (message->request != MPI_REQUEST_NULL) mpi_cancel(self, request);
        message->is_used = 0;
        return result;
    }
    if (!has_ended) {
        if (!hub->desc.poll_limit || ++message->polls < hub->desc.poll_limit) return TL_NOT_READY;
        mpi_cancel(self, request);
        return TL_ERROR_PEER_LOST;
    }
    message->is_used = 0;
    if (message->is_send) return TL_OK;
    result = mpi_explain(MPI_Get_count(&status, MPI_BYTE, &bytes));
    return !result && (uint64_t)bytes != message->bytes ? TL_ERROR_MISMATCH : result;
}

static inline tl_transport mpi_hub_join(mpi_hub *hub) {
    tl_transport transport;
    transport.self = hub;
    transport.rank = hub->rank;
    transport.rank_count = hub->rank_count;
    transport.send = mpi_send;
    transport.receive = mpi_receive;
    transport.poll = mpi_poll;
    transport.cancel = mpi_cancel;
    transport.link = hub->desc.link;
    return transport;
}
#endif
