/* SPDX-License-Identifier: MIT */
/* Speech over HTTP: OpenAI's transcription and speech, and whisper-server's /inference. */
#ifndef HEARTH_SERVER_AUDIO_API_H
#define HEARTH_SERVER_AUDIO_API_H

#include "server/http.h"

void api_transcriptions(struct http_req *r, void *service);   /* POST /v1/audio/transcriptions */
void api_inference(struct http_req *r, void *service);        /* POST /inference */
void api_speech(struct http_req *r, void *service);           /* POST /v1/audio/speech */
void api_piper(struct http_req *r, void *service);            /* POST /piper: text in, S16LE 22.05 kHz out */
void api_voices(struct http_req *r, void *service);           /* GET /v1/audio/voices */

#endif
