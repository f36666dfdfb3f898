import Foundation
import NIOCore
import NIOSupport
import Testing

@Suite("Why an address can't be listened on")
struct ListenFailureTests {
    @Test(arguments: [
        (EADDRINUSE, "another program uses it."), (EADDRNOTAVAIL, "this machine does not have this address."),
        (EACCES, "this user may not listen on this port, for example one below 1024."), (EMFILE, "Too many open files."),
    ])
    func reasons(code: Int32, reason: String) {
        #expect(ListenFailure.reason(IOError(errnoCode: code, reason: "bind")) == reason)
    }
}
