/* ext/render.h - pictures of an env, for people and for recordings.
 *
 * Task extension "envpool.render/1": ep_task.extension() returns an immortal ep_render. */
#ifndef ENVPOOL_EXT_RENDER_H
#define ENVPOOL_EXT_RENDER_H

#include <envpool/env.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EP_EXT_RENDER "envpool.render/1"

enum {
  EP_RGB8 = 1,      /* 3 bytes a pixel */
  EP_RGBA8 = 2,     /* 4 bytes a pixel */
  EP_DEPTH_F32 = 3, /* float a pixel, metres from the camera plane */
  EP_ANSI = 4       /* UTF-8 text: width = bytes available, height = 1; padded with NULs */
};

typedef struct ep_image {
  uint32_t size;
  int32_t format;         /* EP_RGB8 ... */
  uint32_t width, height; /* pixels; 0 on entry of measure(): the env's own choice */
  uint32_t camera;        /* 0: the default camera */
  uint32_t reserved;
  uint64_t row_bytes; /* distance between rows of pixels */
  void* pixels;       /* top row first */
} ep_image;

typedef struct ep_render {
  uint32_t size;
  uint32_t formats; /* bit f set: format f is supported */
  /* Fills width and height where they are 0; refuses (EP_E_ARGUMENT) a size, camera or format that
   * draw() could not draw. pixels and row_bytes are not looked at. [env-exclusive] */
  ep_status(EP_CALL* measure)(void* env, ep_image* image);
  /* Draws the present state; every pixel is written, nothing of the env changes. [env-exclusive] */
  ep_status(EP_CALL* draw)(void* env, const ep_image* image);
} ep_render;

#ifdef __cplusplus
}
#endif
#endif /* ENVPOOL_EXT_RENDER_H */
