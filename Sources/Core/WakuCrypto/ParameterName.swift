/// Names of libcrypto's parameters, and of a group.
///
/// An `OSSL_PARAM` keeps the pointer to its name. Swift imports the macros of `core_names.h` as String, which yields pointers that are valid only
/// during a call. So the names are stored here permanently.
enum ParameterName {
    static var group: UnsafePointer<CChar> { pointer(to: "group") }
    static var p256: UnsafePointer<CChar> { pointer(to: "prime256v1") }
    static var publicKey: UnsafePointer<CChar> { pointer(to: "pub") }
    static var privateKey: UnsafePointer<CChar> { pointer(to: "priv") }

    private static func pointer(to name: StaticString) -> UnsafePointer<CChar> {
        UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self)
    }
}
