import Foundation
import NIOCore

/// Why an address can't be listened on.
package enum ListenFailure {
    /// A sentence without its subject, the address.
    package static func reason(_ error: any Error) -> String {
        (error as? IOError)?.errnoCode == EADDRNOTAVAIL
            ? "can't be listened on: this machine does not have this address." : "can't be listened on: is another program using it?"
    }
}
