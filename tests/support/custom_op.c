// ReviewDouble: twice a tensor of floats. ReviewShared: the length of its shared name.
//
// Registered through TensorFlow's C API, whose functions are declared here: TensorFlow's header of this part is not C.
#include <stddef.h>
#include <stdint.h>

void* TF_NewStatus(void);
void TF_DeleteStatus(void* status);
int TF_NumDims(const void* tensor);
int64_t TF_Dim(const void* tensor, int index);
int64_t TF_TensorElementCount(const void* tensor);
size_t TF_TensorByteSize(const void* tensor);
void* TF_TensorData(const void* tensor);
void TF_DeleteTensor(void* tensor);
void TF_GetInput(void* context, int index, void** tensor, void* status);
void* TF_AllocateOutput(void* context, int index, int dtype, const int64_t* dims, int rank, size_t size, void* status);
void* TF_NewOpDefinitionBuilder(const char* name);
void TF_OpDefinitionBuilderAddInput(void* op, const char* input);
void TF_OpDefinitionBuilderAddOutput(void* op, const char* output);
void TF_OpDefinitionBuilderSetShapeInferenceFunction(void* op, void (*function)(void* context, void* status));
void TF_ShapeInferenceContextSetUnknownShape(void* context, void* status);
void TF_RegisterOpDefinition(void* op, void* status);
void TF_OpDefinitionBuilderAddAttr(void* op, const char* attribute);
void* TF_NewKernelBuilder(const char* op, const char* device, void* (*create)(void*), void (*compute)(void*, void*),
                          void (*delete)(void*));
void TF_OpKernelConstruction_GetAttrSize(void* construction, const char* name, int32_t* list, int32_t* total, void* status);
void TF_RegisterKernelBuilder(const char* name, void* kernel, void* status);

enum { FLOAT = 1, LARGEST_RANK = 8 };

static void twice(void* kernel, void* context) {
  void* status = TF_NewStatus();
  void* input = NULL;
  TF_GetInput(context, 0, &input, status);
  int64_t dims[LARGEST_RANK];
  int rank = TF_NumDims(input);
  for (int i = 0; i < rank && i < LARGEST_RANK; ++i) dims[i] = TF_Dim(input, i);
  void* output = TF_AllocateOutput(context, 0, FLOAT, dims, rank, TF_TensorByteSize(input), status);
  const float* from = TF_TensorData(input);
  float* to = TF_TensorData(output);
  for (int64_t i = 0; i < TF_TensorElementCount(input); ++i) to[i] = 2 * from[i];
  TF_DeleteTensor(input);
  TF_DeleteTensor(output);
  TF_DeleteStatus(status);
}

static void* read_length(void* construction) {
  void* status = TF_NewStatus();
  int32_t list = 0, total = 0;
  TF_OpKernelConstruction_GetAttrSize(construction, "shared_name", &list, &total, status);
  TF_DeleteStatus(status);
  return (void*)(intptr_t)total;
}

static void give_length(void* kernel, void* context) {
  void* status = TF_NewStatus();
  void* output = TF_AllocateOutput(context, 0, FLOAT, NULL, 0, sizeof(float), status);
  *(float*)TF_TensorData(output) = (float)(intptr_t)kernel;
  TF_DeleteTensor(output);
  TF_DeleteStatus(status);
}

static void nothing(void* kernel) {}

static void register_op(const char* name, const char* input, const char* attribute, void* kernel) {
  void* status = TF_NewStatus();
  void* op = TF_NewOpDefinitionBuilder(name);
  if (input) TF_OpDefinitionBuilderAddInput(op, input);
  if (attribute) TF_OpDefinitionBuilderAddAttr(op, attribute);
  TF_OpDefinitionBuilderAddOutput(op, "y: float");
  TF_OpDefinitionBuilderSetShapeInferenceFunction(op, &TF_ShapeInferenceContextSetUnknownShape);
  TF_RegisterOpDefinition(op, status);
  TF_RegisterKernelBuilder(name, kernel, status);
  TF_DeleteStatus(status);
}

__attribute__((constructor)) static void register_all(void) {
  register_op("ReviewDouble", "x: float", NULL, TF_NewKernelBuilder("ReviewDouble", "CPU", NULL, &twice, NULL));
  void* kernel = TF_NewKernelBuilder("ReviewShared", "CPU", &read_length, &give_length, &nothing);
  register_op("ReviewShared", NULL, "shared_name: string = ''", kernel);
}
