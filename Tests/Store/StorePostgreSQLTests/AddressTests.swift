import Storage
import Testing

@testable import StorePostgreSQL

@Suite("The address of a PostgreSQL database")
struct AddressTests {
    @Test(
        "A password is refused, and not quoted",
        arguments: [
            "postgresql://push:hunter2@db.example/push", "postgresql://db.example/push?password=hunter2",
            "host=db.example password=hunter2", "host=db.example sslpassword=hunter2",
        ])
    func password(text: String) {
        let error = #expect(throws: StoreError.self) { try PostgreSQLAddress(text) }
        #expect(error?.code == .invalid)
        #expect(error?.message.contains("by passfile=") == true)
        #expect(error?.message.contains("hunter2") == false)
    }

    @Test(
        "Addresses that libpq does not accept are refused, and not quoted",
        arguments: [
            "postgresql://db.example/push?hunter2", "hunter2", "host=db.example hunter2=1", "postgresql://push:hunter2@[::1",
            "host=db.example scram_client_key=hunter2",
        ])
    func invalid(text: String) {
        let error = #expect(throws: StoreError.self) { try PostgreSQLAddress(text) }
        #expect(error?.code == .invalid)
        #expect(error?.message.contains("hunter2") == false)
    }

    @Test(
        "Values that libpq refuses before it connects are refused with its reason, and without a connection",
        arguments: [
            ("sslmode=verify_full", "invalid sslmode value: \"verify_full\""),
            ("ssl_min_protocol_version=TLSv1.9", "invalid ssl_min_protocol_version value: \"TLSv1.9\""),
            ("port=99999", "invalid port number: \"99999\""),
            ("port=5432,five", "invalid integer value \"five\" for connection option \"port\""),
            ("target_session_attrs=writable", "invalid target_session_attrs value"),
            ("service=no-such-service", "definition of service \"no-such-service\" not found; a service file that PGSERVICEFILE names"),
        ])
    func refusedValues(parameter: String, reason: String) throws {
        let address = try PostgreSQLAddress("host=db.invalid,db2.invalid hostaddr=192.0.2.1,192.0.2.2 dbname=push \(parameter)")
        let error = #expect(throws: StoreError.self) { try address.requireAccepted() }
        #expect(error?.code == .invalid)
        #expect(error?.message.hasPrefix("libpq refuses the store's address: \(reason)") == true)
    }

    @Test(
        "Other values are accepted without a connection",
        arguments: [
            "host=192.0.2.1", "host=one,two port=5432,5433 sslmode=verify-full", "host=/nonexistent", "hostaddr=192.0.2.1,192.0.2.2",
        ])
    func acceptedValues(text: String) throws {
        let address = try PostgreSQLAddress(text)
        #expect(throws: Never.self) { try address.requireAccepted() }
    }

    @Test("A parameter that only later versions of libpq know is named", .enabled(if: isBeforeVersion16))
    func laterKeyword() {
        for text in ["postgresql://db.example/push?sslnegotiation=direct", "host=db.example sslnegotiation=direct"] {
            let error = #expect(throws: StoreError.self) { try PostgreSQLAddress(text) }
            #expect(error?.code == .invalid)
            #expect(error?.message.contains("has sslnegotiation=, which libpq of version") == true)
        }
    }

    private static let isBeforeVersion16 = (try? PostgreSQLAddress("require_auth=none")) == nil

    @Test(
        "It is shown by its hosts and database",
        arguments: [
            ("postgresql://push@db.example/registrations?sslmode=verify-full", "database registrations on db.example"),
            ("host=one,two port=5432,5433 dbname=push user=x", "database push on one, two:5433"), ("service=push", "service push"),
            ("postgresql:///push", "database push"),
        ])
    func description(text: String, shown: String) throws {
        #expect(try PostgreSQLAddress(text).description == shown)
    }

    @Test(
        "The reason of a failed connection is complete, also where libpq still waited for an answer",
        arguments: [
            ("", "it does not answer"), ("\n", "it does not answer"),
            ("connection to server at db failed: ", "connection to server at db failed: it does not answer"),
            ("connection to a failed: refused\n\tIs it running?\n", "connection to a failed: refused; Is it running?"),
            (
                "server closed the connection unexpectedly\n\tThis probably means the server terminated abnormally\n"
                    + "\tbefore or while processing the request.\n", "server closed the connection unexpectedly"
            ),
            ("a failed: refused\nb failed: \n", "a failed: refused; b failed: it does not answer"),
            (#"connection to server at "z", port 1 failed: refused"#, #"connection to server at "z", port 1 failed: refused"#),
        ])
    func connectionReason(message: String, reason: String) {
        #expect(PostgreSQLConnection.reason(message, at: "database push on db.example:5432") == reason)
    }

    @Test(
        "The reason does not repeat the host that the error names",
        arguments: [
            (#"connection to server at "db.example", port 5432 failed: "#, "it does not answer"),
            ("connection to server at \"db.example\", port 5432 failed: refused\n\tIs the server running on that host?\n", "refused"),
            (#"connection to server at "db.example" (10.0.0.5), port 5432 failed: refused"#, "10.0.0.5: refused"),
            (#"connection to server at "10.0.0.5", port 5432 failed: refused"#, "10.0.0.5: refused"),
            (#"connection to server at "10.6", port 1 failed: refused"#, #"connection to server at "10.6", port 1 failed: refused"#),
        ])
    func connectionReasonWithoutHost(message: String, reason: String) {
        #expect(PostgreSQLConnection.reason(message, at: "database push on db.example:5432", resolvedTo: "10.0.0.5") == reason)
    }

    @Test(
        "Reasons that libpq leaves out are named with the remedy",
        arguments: [
            ("SSL error: certificate verify failed\n", "has expired, or no authority in sslrootcert"),
            ("fe_sendauth: no password supplied\n", "or is known to another process only (PGPASSFILE, ~/.pgpass): name it by passfile="),
            ("session is read-only\n", "give the primary"),
        ])
    func connectionRemedy(end: String, remedy: String) {
        let message = #"connection to server at "10.0.0.5", port 5432 failed: "# + end
        let reason = PostgreSQLConnection.reason(message, at: "database push on db.example:5432", resolvedTo: "10.0.0.5")
        #expect(reason.hasPrefix("10.0.0.5: ") && reason.contains(remedy))
        #expect(!reason.contains("fe_sendauth"))
    }
}
