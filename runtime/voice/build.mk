# SPDX-License-Identifier: MIT
RT_SRCS += \
	runtime/voice/account.c \
	runtime/voice/alsa.c \
	runtime/voice/answer.c \
	runtime/voice/audio.c \
	runtime/voice/ear.c \
	runtime/voice/lexicon.c \
	runtime/voice/offset.c \
	runtime/voice/phrasebook.c \
	runtime/voice/phrases.c \
	runtime/voice/resample.c \
	runtime/voice/ring.c \
	runtime/voice/silero.c \
	runtime/voice/silero_file.c \
	runtime/voice/stt.c \
	runtime/voice/stt_decoder.c \
	runtime/voice/stt_home.c \
	runtime/voice/stt_model.c \
	runtime/voice/trigram.c \
	runtime/voice/tts.c \
	runtime/voice/tts_espeak.c \
	runtime/voice/tts_flite.c \
	runtime/voice/vad.c \
	runtime/voice/vad_energy.c \
	runtime/voice/wake.c \
	runtime/voice/wav_read.c \
	runtime/voice/wav_write.c \
	# EOL
PKGS += \
	alsa \
	jansson \
	pocketsphinx \
	sndfile \
	soxr \
	sphinxbase \
	# EOL
LIBS += -lflite_usenglish -lflite_cmulex -lflite
PROGS += \
	silero-convert \
	# EOL
silero-convert_SRCS := tools/silero_convert.c
TESTS += \
	test_audio \
	test_ear \
	test_offset \
	test_ring \
	test_speech \
	test_stt_model \
	test_vad \
	test_wake \
	# EOL
BENCHES += \
	bench_hear \
	bench_stt \
	# EOL
FUZZERS += \
	fuzz_onnx \
	fuzz_wav \
	# EOL
# the turn's part
RT_SRCS += \
	runtime/voice/chunker.c \
	runtime/voice/home_size.c \
	runtime/voice/listen.c \
	runtime/voice/mailbox.c \
	runtime/voice/mouth.c \
	runtime/voice/number.c \
	runtime/voice/plain.c \
	runtime/voice/sched.c \
	runtime/voice/say_date.c \
	runtime/voice/say_number.c \
	runtime/voice/say_unit.c \
	runtime/voice/speak.c \
	runtime/voice/talk.c \
	runtime/voice/trace.c \
	runtime/voice/voice.c \
	# EOL
TESTS += \
	test_chunker \
	test_sched \
	test_speak \
	test_trace \
	# EOL
FUZZERS += \
	fuzz_chunker \
	# EOL
