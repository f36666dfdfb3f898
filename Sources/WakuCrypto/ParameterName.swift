/// Names of libcrypto's parameters.
///
/// An `OSSL_PARAM` keeps the pointer to its name. The macros of `core_names.h` are of type String in Swift, whose pointers end with the call
/// that they are passed to: so the names stand here, in memory that stays.
enum ParameterName {
    static var digest: UnsafePointer<CChar> { pointer(to: "digest") }
    static var key: UnsafePointer<CChar> { pointer(to: "key") }
    static var salt: UnsafePointer<CChar> { pointer(to: "salt") }
    static var info: UnsafePointer<CChar> { pointer(to: "info") }

    private static func pointer(to name: StaticString) -> UnsafePointer<CChar> {
        UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self)
    }
}
