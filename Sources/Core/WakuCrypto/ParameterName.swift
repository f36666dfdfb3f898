/// Names of libcrypto's parameters.
///
/// An `OSSL_PARAM` keeps the pointer to its name. The macros of `core_names.h` are of type String in Swift, whose pointers are valid only during the call
/// that they are passed to. So the names are stored here permanently.
enum ParameterName {
    static var digest: UnsafePointer<CChar> { pointer(to: "digest") }
    static var key: UnsafePointer<CChar> { pointer(to: "key") }
    static var salt: UnsafePointer<CChar> { pointer(to: "salt") }
    static var info: UnsafePointer<CChar> { pointer(to: "info") }

    private static func pointer(to name: StaticString) -> UnsafePointer<CChar> {
        UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self)
    }
}
