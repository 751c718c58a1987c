/**
 * ONNX Runtime's own builds tell Microsoft about each session (hashes of graph and weights, the machine's id) since 1.29, on Linux too, and
 * keep a database below HOME for it. This module switches that off. Import it before the library, and in the main thread, because native
 * code sees only the main thread's environment.
 */
process.env.ORT_DISABLE_TELEMETRY ??= "1";
