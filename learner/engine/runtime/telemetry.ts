/**
 * ONNX Runtime's own builds tell Microsoft about each session (hashes of graph and weights, the machine's id) since 1.29, on Linux too, and
 * keep a database below HOME for it. Not from here: imported before the library is, and in the main thread, whose
 * environment alone native code sees.
 */
process.env.ORT_DISABLE_TELEMETRY ??= "1";
