import CZeroMQ
package import Core

/// libzmq with CURVE, opened at run time. Whoever has a value can call it.
package struct ZeroMQLibrary: Sendable {
    package static let soname = "libzmq.so.5"
    package static let debianPackage = "libzmq5"

    private static let opened = Result { () throws(OptionalLibraryError) in try ZeroMQLibrary(opening: soname) }

    /// Filled before anyone else can see it, read-only from then on and never freed: safe to share.
    nonisolated(unsafe) let table: UnsafePointer<czeromq>

    /// The library, opened by the first call.
    ///
    /// - Throws: ``OptionalLibraryError`` when it is not installed, lacks a function, or was built without CURVE.
    package static func load() throws(OptionalLibraryError) -> ZeroMQLibrary {
        try opened.get()
    }

    init(opening soname: String) throws(OptionalLibraryError) {
        var functions = czeromq()
        func failure(_ reason: String) -> OptionalLibraryError {
            OptionalLibraryError(library: soname, debianPackage: Self.debianPackage, reason: reason)
        }
        if let reason = czeromq_open(soname, &functions) { throw failure(String(cString: reason)) }
        guard functions.zmq_has("curve") == 1 else { throw failure("it was built without CURVE") }
        let table = UnsafeMutablePointer<czeromq>.allocate(capacity: 1)
        table.initialize(to: functions)
        self.table = UnsafePointer(table)
    }

    /// What the last call on this thread failed with.
    var lastError: Int32 { table.pointee.zmq_errno() }

    func text(of error: Int32) -> String {
        table.pointee.zmq_strerror(error).map { String(cString: $0) } ?? "error \(error)"
    }
}
