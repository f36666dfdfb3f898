import CZeroMQ
package import Core

/// libzmq with CURVE, loaded at run time: the servers of the demo, the benchmark and tests are its own, the node has no need of it. A value of this type is the only way to call its functions.
package struct ZeroMQLibrary: Sendable {
    package static let soname = CZEROMQ_SONAME
    package static let debianPackage = "libzmq5"

    private static let opened = Result { () throws(OptionalLibraryError) in try ZeroMQLibrary(opening: soname) }

    /// Filled before it is published, read-only afterwards and never freed: safe to share between threads.
    nonisolated(unsafe) let table: UnsafePointer<czeromq>

    /// Returns the library; the first call opens it.
    ///
    /// - Throws: ``OptionalLibraryError`` if the library is not installed, lacks a function, or was built without CURVE.
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

    /// The error number of the last failed call on this thread.
    var lastError: Int32 { table.pointee.zmq_errno() }

    func text(of error: Int32) -> String {
        table.pointee.zmq_strerror(error).map { String(cString: $0) } ?? "error \(error)"
    }
}
