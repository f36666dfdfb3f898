import Foundation
import NIOCore

/// Why an address can't be listened on.
package enum ListenFailure {
    /// Completes `can't listen on ADDRESS: `.
    package static func reason(_ error: any Error) -> String {
        switch (error as? IOError)?.errnoCode {
        case EADDRINUSE: "another program uses it."
        case EADDRNOTAVAIL: "this machine does not have this address."
        case EACCES: "this user may not listen on this port, for example one below 1024."
        case let code?: "\(String(cString: strerror(code)))."
        case nil: "\(error)."
        }
    }
}
