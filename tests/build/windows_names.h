// Macros of windows.h and of what it includes, as they are defined there: no name of the headers may be one of them.
// Standard headers come first, as under windows.h.
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#include <windows.h>
#else

// windef.h
#define near
#define far
#define NEAR
#define FAR
#define pascal
#define cdecl
#define IN
#define OUT
#define OPTIONAL
#define CONST const
#define VOID void
#define min(a, b) (((a) < (b)) ? (a) : (b))
#define max(a, b) (((a) > (b)) ? (a) : (b))

// rpcndr.h, objbase.h
#define hyper long long
#define interface struct
#define THIS void
#define THIS_
#define PURE = 0

// winnt.h, winbase.h, winerror.h
#define DELETE 0x00010000
#define IGNORE 0
#define INFINITE 0xFFFFFFFFu
#define STRICT 1
#define NO_ERROR 0L
#define Yield()
#define GetCurrentTime() 0

// wingdi.h, winuser.h, dlgs.h
#define ERROR 0
#define ABSOLUTE 1
#define RELATIVE 2
#define OPAQUE 2
#define TRANSPARENT 1
#define PASSTHROUGH 19
#define DIFFERENCE 11
#define RGB(r, g, b) ((r) | (g) << 8 | (b) << 16)
#define GetObject GetObjectA
#define GetMessage GetMessageA
#define SendMessage SendMessageA
#define LoadImage LoadImageA
#define DrawText DrawTextA
#define grp1 0x0430
#define frm1 0x0434
#define psh1 0x0400
#define chx1 0x0410
#define rad1 0x0420
#define lst1 0x0460
#define cmb1 0x0470
#define edt1 0x0480
#define stc1 0x0440

// winsock
#define s_addr S_un.S_addr
#define s_host S_un.S_un_b.s_b2
#define s_net S_un.S_un_b.s_b1
#endif

#ifndef small  // rpcndr.h of Microsoft's kit; others leave it out
#define small char
#endif
