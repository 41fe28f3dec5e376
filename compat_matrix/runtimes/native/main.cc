// The worker program `cpp_worker` (docs/contracts.md, section 5): a loop over requests, one JSON object per line each way.
#include <map>
#include <memory>
#include <new>
#include <string>
#include <unistd.h>

#include "failure.h"
#include "json.h"
#include "loader.h"
#include "npz.h"
#include "process.h"
#include "signatures.h"

namespace compat {
namespace {

constexpr int kProtocol = 1;
constexpr size_t kMaxText = 20000;  // characters of a message: a hostile model may make its reader say anything

class Worker {
 public:
  // The reply to one line; never throws for what the request made go wrong.
  Json Answer(const Json& request) {
    try {
      Json reply = Dispatch(request);
      reply.Set("status", "ok");
      return reply;
    } catch (const Failure& failure) {
      return Reply(failure);
    } catch (const std::bad_alloc&) {
      return Reply(Failure("MemoryError", "no memory"));
    } catch (const std::exception& error) {
      return Reply(Failure("std::exception", error.what()));
    }
  }

  static Json Reply(const Failure& failure) {
    Json out = Json::Object();
    out.Set("status", failure.status);
    out.Set("error_class", failure.error_class);
    out.Set("message", CleanUtf8(failure.message, kMaxText));
    out.Set("traceback", "");
    return out;
  }

 private:
  Json Dispatch(const Json& request) {
    static const std::map<std::string, Json (Worker::*)(const Json&)> kOperations = {
        {"hello", &Worker::Hello}, {"load", &Worker::Load},   {"signatures", &Worker::DescribeSignatures},
        {"call", &Worker::Call},   {"fetch", &Worker::Fetch}, {"close", &Worker::Close}};
    const Json* name = request.Find("op");
    const auto operation = kOperations.find(name && name->kind == Json::Kind::kString ? name->text : "");
    if (operation == kOperations.end()) throw Unsupported("no operation called " + (name ? name->Dump() : "null"));
    BusyWith(operation->first.c_str());
    return (this->*operation->second)(request);
  }

  Json Hello(const Json& request) {
    const Json* protocol = request.Find("protocol");
    if (!protocol || protocol->kind != Json::Kind::kInt || protocol->integer != kProtocol) {
      const std::string asked = protocol ? protocol->Dump() : "null";
      throw Unsupported("protocol " + asked + "; this worker speaks " + std::to_string(kProtocol));
    }
    Json out = Json::Object(), versions = Json::Object();
    versions.Set("tensorflow", TensorFlowVersion());
#ifdef __VERSION__
    versions.Set("compiler", __VERSION__);
#endif
    out.Set("name", "cpp");
    out.Set("protocol", kProtocol);
    out.Set("versions", versions);
    out.Set("libraries", Json::Strings(MappedLibraries()));
    out.Set("capabilities", Json::Strings({"fetch", "tags"}));
    out.Set("imported", Json::Array());
    return out;
  }

  Json Load(const Json& request) {
    std::unique_ptr<Model> model = Model::Load(request.At("dir").String(), request.At("tags").StringList());
    models_[++handles_] = std::move(model);
    Json out = Json::Object();
    out.Set("handle", handles_);
    out.Set("rss_kib", ResidentKib());
    return out;
  }

  Json DescribeSignatures(const Json& request) {
    Json out = Json::Object();
    out.Set("signatures", Describe(Loaded(request).signatures()));
    return out;
  }

  Json Call(const Json& request) {
    Model& model = Loaded(request);
    const Json& asked = request.At("request");
    const NamedTensors inputs = LoadTensors(request.At("io_dir").String() + "/" + asked.At("inputs").String());
    if (asked.At("kind").String() != "signature") throw Unsupported("cpp has no call_function");
    SaveTensors(request.At("outputs").String(), model.Call(asked.At("signature").String(), inputs));
    return Json::Object();
  }

  Json Fetch(const Json& request) {
    Model& model = Loaded(request);
    SaveTensors(request.At("outputs").String(), model.Fetch(request.At("tensors").StringList()));
    return Json::Object();
  }

  Json Close(const Json& request) {
    Model& model = Loaded(request);
    const int64_t handle = request.At("handle").Integer();
    const std::unique_ptr<Model> kept = std::move(models_[handle]);
    models_.erase(handle);
    model.Close();
    return Json::Object();
  }

  Model& Loaded(const Json& request) {
    const Json& handle = request.At("handle");
    const auto found = handle.kind == Json::Kind::kInt ? models_.find(handle.integer) : models_.end();
    if (found == models_.end()) throw KeyError("no model has the handle " + handle.Dump());
    return *found->second;
  }

  std::map<int64_t, std::unique_ptr<Model>> models_;
  int64_t handles_ = 0;
};

int Serve() {
  InstallLastWords();
  Channel channel = Channel::Inherited();
  Worker worker;
  for (std::string line; channel.ReadLine(&line);) {
    Json request = Json::Object(), reply;
    try {
      request = Json::Parse(line);
      if (request.kind != Json::Kind::kObject) throw ValueError("a request is an object");
      const Json* op = request.Find("op");
      const bool bye = op && op->kind == Json::Kind::kString && op->text == "bye";
      reply = bye ? Json::Object() : worker.Answer(request);
      if (bye) reply.Set("status", "ok");
    } catch (const Failure& failure) {
      request = Json::Object();
      reply = Worker::Reply(failure);
    }
    const Json* id = request.Find("id");
    reply.Set("id", id ? *id : Json());
    channel.Write(reply.Dump());
    const Json* op = request.Find("op");
    if (op && op->kind == Json::Kind::kString && op->text == "bye") break;
    BusyWith("nothing: it waits for a request");
  }
  _exit(0);  // unloading TensorFlow takes most of a second, and nobody looks any more
}

}  // namespace
}  // namespace compat

int main() { return compat::Serve(); }
