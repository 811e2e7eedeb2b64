/* SPDX-License-Identifier: MIT */
/*
 * The device as C sees it: thin wrappers that turn a failed CUDA call into a
 * sentence and clear the error, so that the next call starts clean.
 */
#include <stdio.h>
#include <string.h>

#include "kernels/launch.cuh"

bool hk_pdl;

static thread_local char text[400];
static int device = -1;

/* Compiled as all others are: whether it can be loaded says whether they can. */
static __global__ void nothing(void)
{
}

static const char *advice(cudaError_t e)
{
	switch (e) {
	case cudaErrorMemoryAllocation:
		return "free GPU memory or use a smaller context";
	case cudaErrorInsufficientDriver:
		return "install a newer NVIDIA driver, or use the CPU backend";
	case cudaErrorNoDevice:
	case cudaErrorInvalidDevice:
		return "use the CPU backend";
	case cudaErrorNoKernelImageForDevice:
		return "this build has no code for this GPU: rebuild with its architecture, or use the CPU backend";
	default:
		return "close the model and open it again";
	}
}

/* After these every call of the process fails, with the same error, until it ends. */
static bool lost(cudaError_t e)
{
	switch (e) {
	case cudaErrorECCUncorrectable:
	case cudaErrorNvlinkUncorrectable:
	case cudaErrorIllegalAddress:
	case cudaErrorLaunchTimeout:
	case cudaErrorContextIsDestroyed:
	case cudaErrorAssert:
	case cudaErrorHardwareStackError:
	case cudaErrorIllegalInstruction:
	case cudaErrorMisalignedAddress:
	case cudaErrorInvalidAddressSpace:
	case cudaErrorInvalidPc:
	case cudaErrorLaunchFailure:
	case cudaErrorMpsClientTerminated:
	case cudaErrorUnknown:   /* what is said of a device that has left the bus */
		return true;
	default:
		return (int)e == 226 || (int)e == 721;   /* cudaErrorContained, cudaErrorTensorMemoryLeak, of CUDA 12 and 13 */
	}
}

int hk_dev_fail(cudaError_t e, const char *what)
{
	snprintf(text, sizeof(text), "%s failed on CUDA device %d: %s (%s); %s", what, device,
		 cudaGetErrorString(e), cudaGetErrorName(e), lost(e) ? HK_LOST : advice(e));
	(void)cudaGetLastError();
	return e == cudaErrorMemoryAllocation ? -ENOMEM : lost(e) ? -ENODEV : -EIO;
}

#define TRY(call, what) do { \
	cudaError_t e_ = (call); \
	if (e_ != cudaSuccess) \
		return hk_dev_fail(e_, what); \
} while (0)

extern "C" {

const char *hk_dev_error(void) { return text; }

static int attr(enum cudaDeviceAttr a, int dev)
{
	int v = 0;

	if (cudaDeviceGetAttribute(&v, a, dev) != cudaSuccess) {
		(void)cudaGetLastError();
		v = 0;
	}
	return v;
}

/* Whether the driver finds something in this build that the device can run: 0, or the error of asking. */
static int has_code(int dev, bool *ret)
{
	struct cudaFuncAttributes a;
	cudaError_t e;

	*ret = false;
	TRY(cudaSetDevice(dev), "cudaSetDevice");
	e = cudaFuncGetAttributes(&a, (const void *)nothing);
	switch (e) {
	case cudaSuccess:
		*ret = true;
		return 0;
	case cudaErrorNoKernelImageForDevice:
	case cudaErrorInvalidKernelImage:
	case cudaErrorInvalidDeviceFunction:
	case cudaErrorInvalidPtx:
	case cudaErrorUnsupportedPtxVersion:
	case cudaErrorJitCompilerNotFound:
	case cudaErrorJitCompilationDisabled:
		(void)cudaGetLastError();
		return 0;
	default:
		return hk_dev_fail(e, "loading a kernel");
	}
}

int hk_dev_probe(int index, struct hk_dev_info *ret)
{
	struct cudaDeviceProp p;
	struct hk_dev_info i = {};
	cudaError_t e;
	int n = 0, rc;

	e = cudaDriverGetVersion(&i.driver);
	(void)cudaRuntimeGetVersion(&i.runtime);
	if (e == cudaSuccess && i.driver == 0)
		e = cudaErrorInsufficientDriver;
	if (e == cudaSuccess)
		e = cudaGetDeviceCount(&n);
	if (e == cudaErrorInsufficientDriver) {
		(void)cudaGetLastError();
		if (!i.driver) {
			snprintf(text, sizeof(text), "no NVIDIA driver is loaded on this machine");
			return -ENODEV;
		}
		snprintf(text, sizeof(text), "the NVIDIA driver supports CUDA %d.%d and this program needs %d.%d: install a newer driver",
			 i.driver / 1000, i.driver % 1000 / 10, i.runtime / 1000, i.runtime % 1000 / 10);
		return -ENOTSUP;
	}
	if (e == cudaErrorNoDevice || (e == cudaSuccess && n == 0)) {
		(void)cudaGetLastError();
		snprintf(text, sizeof(text), "no NVIDIA GPU is visible to this process");
		return -ENODEV;
	}
	if (e != cudaSuccess)
		return hk_dev_fail(e, "cudaGetDeviceCount"), -ENODEV;
	if (index >= n) {
		snprintf(text, sizeof(text), "CUDA device %d was asked for and there are %d", index, n);
		return -ENODEV;
	}
	device = index;
	TRY(cudaGetDeviceProperties(&p, index), "cudaGetDeviceProperties");
	snprintf(i.name, sizeof(i.name), "%.63s", p.name);
	i.major = p.major;
	i.minor = p.minor;
	i.sms = p.multiProcessorCount;
	i.integrated = p.integrated != 0;
	i.mem_total = p.totalGlobalMem;
	i.host_register = attr(cudaDevAttrHostRegisterSupported, index) &&
			  attr(cudaDevAttrCanUseHostPointerForRegisteredMem, index);
	i.host_register_ro = attr(cudaDevAttrHostRegisterReadOnlySupported, index) != 0;
	i.pdl = p.major >= 9;
	i.smem = (size_t)attr(cudaDevAttrMaxSharedMemoryPerBlockOptin, index);
	i.code = true;
	rc = hk_dev_served(&i, text, sizeof(text));   /* what the device is, before a context is made to ask more */
	if (!rc)
		rc = has_code(index, &i.code);
	if (!rc)
		rc = hk_dev_served(&i, text, sizeof(text));
	if (rc)
		return rc;
	*ret = i;
	return 0;
}

int hk_dev_open(int index)
{
	TRY(cudaSetDevice(index), "cudaSetDevice");
	TRY(cudaFree(0), "creating the CUDA context");
	device = index;
	hk_pdl = attr(cudaDevAttrComputeCapabilityMajor, index) >= 9;
	return 0;
}

int hk_dev_mem(size_t *ret_free, size_t *ret_total)
{
	TRY(cudaMemGetInfo(ret_free, ret_total), "cudaMemGetInfo");
	return 0;
}

int hk_dev_alloc(size_t bytes, void **ret)
{
	cudaError_t e = cudaMalloc(ret, bytes);
	char what[64];

	if (e == cudaSuccess)
		return 0;
	snprintf(what, sizeof(what), "cudaMalloc of %zu MiB", bytes >> 20);
	return hk_dev_fail(e, what);
}

void hk_dev_free(void *p) { (void)cudaFree(p); }

int hk_host_alloc(size_t bytes, void **ret)
{
	TRY(cudaMallocHost(ret, bytes), "cudaMallocHost");
	return 0;
}
void hk_host_free(void *p) { (void)cudaFreeHost(p); }

int hk_host_register(void *p, size_t bytes, bool read_only, void **ret_dev)
{
	TRY(cudaHostRegister(p, bytes, cudaHostRegisterMapped |
			     (read_only ? cudaHostRegisterReadOnly : 0)), "cudaHostRegister");
	cudaError_t e = cudaHostGetDevicePointer(ret_dev, p, 0);

	if (e == cudaSuccess)
		return 0;
	hk_host_unregister(p);
	return hk_dev_fail(e, "cudaHostGetDevicePointer");
}
void hk_host_unregister(void *p)
{
	if (cudaHostUnregister(p) != cudaSuccess)
		(void)cudaGetLastError();
}

static int stream_open(bool urgent, void **ret)
{
	int low, high;
	cudaStream_t s;

	TRY(cudaDeviceGetStreamPriorityRange(&low, &high), "cudaDeviceGetStreamPriorityRange");
	TRY(cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, urgent ? high : low), "cudaStreamCreate");
	*ret = s;
	return 0;
}
/* Speech on the same GPU goes first. */
int hk_stream_open(void **ret) { return stream_open(false, ret); }
int hk_stream_open_urgent(void **ret) { return stream_open(true, ret); }
void hk_stream_close(void *st) { (void)cudaStreamDestroy((cudaStream_t)st); }

int hk_stream_sync(void *st)
{
	TRY(cudaStreamSynchronize((cudaStream_t)st), "a kernel of the step");
	return 0;
}

int hk_copy_in(void *st, void *dev, const void *host, size_t bytes)
{
	TRY(cudaMemcpyAsync(dev, host, bytes, cudaMemcpyHostToDevice, (cudaStream_t)st), "copy to the GPU");
	return 0;
}
int hk_copy_out(void *st, void *host, const void *dev, size_t bytes)
{
	TRY(cudaMemcpyAsync(host, dev, bytes, cudaMemcpyDeviceToHost, (cudaStream_t)st), "copy from the GPU");
	return 0;
}
int hk_dev_copy(void *st, void *dst, const void *src, size_t bytes)
{
	TRY(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToDevice, (cudaStream_t)st), "copy on the GPU");
	return 0;
}
int hk_fill(void *st, void *dev, int byte, size_t bytes)
{
	TRY(cudaMemsetAsync(dev, byte, bytes, (cudaStream_t)st), "cudaMemset");
	return 0;
}

int hk_capture_begin(void *st)
{
	TRY(cudaStreamBeginCapture((cudaStream_t)st, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
	return 0;
}
int hk_capture_end(void *st, void **ret_graph)
{
	cudaGraph_t g;
	cudaGraphExec_t x;
	cudaError_t e;

	TRY(cudaStreamEndCapture((cudaStream_t)st, &g), "cudaStreamEndCapture");
	e = cudaGraphInstantiateWithFlags(&x, g, 0);
	(void)cudaGraphDestroy(g);
	if (e != cudaSuccess)
		return hk_dev_fail(e, "cudaGraphInstantiate");
	*ret_graph = x;
	return 0;
}
int hk_graph_launch(void *st, void *graph)
{
	TRY(cudaGraphLaunch((cudaGraphExec_t)graph, (cudaStream_t)st), "cudaGraphLaunch");
	return 0;
}
int hk_graph_upload(void *st, void *graph)
{
	TRY(cudaGraphUpload((cudaGraphExec_t)graph, (cudaStream_t)st), "cudaGraphUpload");
	return 0;
}
void hk_graph_free(void *graph) { (void)cudaGraphExecDestroy((cudaGraphExec_t)graph); }

int hk_event_time(void *st, int which, float *ret_ms)
{
	static cudaEvent_t ev[2];

	for (int i = 0; i < 2; i++)
		if (!ev[i])
			TRY(cudaEventCreate(&ev[i]), "cudaEventCreate");
	if (which < 2) {
		TRY(cudaEventRecord(ev[which], (cudaStream_t)st), "cudaEventRecord");
	} else {
		TRY(cudaEventSynchronize(ev[1]), "cudaEventSynchronize");
		TRY(cudaEventElapsedTime(ret_ms, ev[0], ev[1]), "cudaEventElapsedTime");
	}
	return 0;
}

} /* extern "C" */
