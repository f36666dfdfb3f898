/// Names of libcrypto's parameters.
///
/// An `OSSL_PARAM` keeps the pointer to its name. Swift imports the macros of `core_names.h` as String, which yields pointers that are valid only
/// during a call. So the names are stored here permanently.
enum ParameterName {
    static var digest: UnsafePointer<CChar> { pointer(to: "digest") }
    static var key: UnsafePointer<CChar> { pointer(to: "key") }
    static var salt: UnsafePointer<CChar> { pointer(to: "salt") }
    static var info: UnsafePointer<CChar> { pointer(to: "info") }

    private static func pointer(to name: StaticString) -> UnsafePointer<CChar> {
        UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self)
    }
}
